"""`tools` and `tool_choice` of a chat, checked as vLLM checks them."""

from typing import Any

from engine.checks import Body
from engine.errors import BadRequest


def offers_tools(body: Body, parser: str | None) -> bool:
    """Whether the model may call a function. Raises `BadRequest`."""
    tools, choice = body.get("tools"), body.get("tool_choice")
    if tools is not None and not (isinstance(tools, list) and all(map(_is_function, tools))):
        raise BadRequest("tools must be a list of {type: function, function: {name, ...}}", "tools")
    if choice == "none" or (choice is None and not tools):
        return False
    if not tools:
        raise BadRequest("When using `tool_choice`, `tools` must be set.", "tool_choice")
    if choice in (None, "auto") and parser is None:
        raise BadRequest(
            '"auto" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set',
            "tool_choice",
        )
    return True


def forced(body: Body, honest: bool) -> str | None:
    """The function that has to be called, None where it is left to the model. Raises `BadRequest`.

    Structured outputs do that, which a diffusion model refuses. One that writes left to right (`honest` is
    False) calls the first function where any will do.
    """
    tools, choice = body["tools"], body.get("tool_choice")
    if choice in (None, "auto"):
        return None
    names: list[str] = [tool["function"]["name"] for tool in tools]
    name = names[0]
    if choice != "required":
        name = _named(choice)
        if name not in names:
            raise BadRequest(
                "The tool specified in `tool_choice` does not match any of the specified `tools`",
                "tool_choice",
            )
    if honest:
        raise BadRequest(
            "structured_outputs is not supported by diffusion models: tool_choice must be auto or none",
            "tool_choice",
        )
    return name


def _named(choice: Any) -> str:
    function = choice.get("function") if isinstance(choice, dict) else None
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise BadRequest(
            "Invalid value for `tool_choice`: auto, none, required or {type: function, function: {name}}",
            "tool_choice",
        )
    name: str = function["name"]
    return name


def _is_function(tool: Any) -> bool:
    function = tool.get("function") if isinstance(tool, dict) else None
    return isinstance(function, dict) and isinstance(function.get("name"), str)
