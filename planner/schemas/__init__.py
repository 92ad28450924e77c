"""JSON Schemas: what may be asked for, what engines are sent of it, and whether a value is valid. Pure."""
