"""The workers: they run a plan's waves against the pool of engines and keep it in the store."""
