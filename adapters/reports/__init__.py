"""Report explanations, plans, and audits."""
