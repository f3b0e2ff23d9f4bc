"""Test operators: simulation, strategies, fixtures."""
