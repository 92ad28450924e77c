"""The smallest JSON value that a schema allows: what the script answers when no rule says more."""

from typing import Any

_DEPTH = 8  # a recursive schema must end somewhere


def sample(schema: Any, root: Any = None, depth: int = 0) -> Any:
    """A value for the schema: the first of every choice, the lowest number, required properties only."""
    if not isinstance(schema, dict) or depth > _DEPTH:
        return None
    root = schema if root is None else root
    if "$ref" in schema:
        return sample(_resolve(schema["$ref"], root), root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for choice in ("anyOf", "oneOf", "allOf"):
        if schema.get(choice):
            return sample(schema[choice][0], root, depth + 1)
    kind: Any = schema.get("type", "object" if "properties" in schema else None)
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        properties = schema.get("properties", {})
        required: Any = schema.get("required", properties)
        names = [name for name in properties if name in required]
        return {name: sample(properties[name], root, depth + 1) for name in names}
    if kind == "array":
        return [sample(schema.get("items"), root, depth + 1)] * int(schema.get("minItems", 0))
    if kind in ("integer", "number"):
        return schema.get("minimum", 0)
    if kind == "string":
        return "x" * int(schema.get("minLength", 0))
    return False if kind == "boolean" else None


def _resolve(reference: str, root: dict[str, Any]) -> Any:
    found: Any = root
    for part in reference.removeprefix("#").strip("/").split("/"):
        found = found.get(part, {}) if part else found
    return found
