"""The API: front doors, and waiting for what the workers answer."""
