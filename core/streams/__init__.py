"""List and watch collections."""
