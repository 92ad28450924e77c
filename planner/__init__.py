"""The planner: decisions become waves of reads, and results become answers. Pure."""
