"""Recordings that were made once, and have to replay as they are after every change."""
