"""In the making."""
def compile_schema(schema, loc=()):
    raise NotImplementedError
