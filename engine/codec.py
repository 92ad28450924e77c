"""Text to token ids and back, and the chat template, from a Hugging Face tokenizer folder.

`tokenizers` and `jinja2` alone: importing transformers would take longer than starting the engine.
"""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from jinja2 import TemplateError
from jinja2.ext import loopcontrols
from jinja2.sandbox import ImmutableSandboxedEnvironment
from tokenizers import Tokenizer

from engine.errors import BadRequest

# An image stands for this many prompt tokens (Gemma's soft tokens per image).
IMAGE_TOKENS = 256


class Codec:
    """One tokenizer folder, loaded. `vocabulary` and `context` are counts of tokens."""

    def __init__(self, folder: Path) -> None:
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        config = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.vocabulary: int = self._tokenizer.get_vocab_size(with_added_tokens=True)
        self.context = int(config.get("model_max_length") or 0)
        self.eos = self._special(config, "eos_token")
        self.pad = self._special(config, "pad_token")
        self._specials = {
            name: _content(config[name])
            for name in ("bos_token", "eos_token", "pad_token")
            if config.get(name)
        }
        self._texts: dict[int, str] = {}
        self._template = _compile(_template_source(folder, config))

    def _special(self, config: dict[str, Any], name: str) -> int:
        found = self._tokenizer.token_to_id(_content(config.get(name) or ""))
        return 0 if found is None else found

    def encode(self, text: str, add_special_tokens: bool = False) -> list[int]:
        """Token ids; special tokens written out in the text count as themselves."""
        return self._tokenizer.encode(text, add_special_tokens=add_special_tokens).ids

    def decode(self, ids: list[int], skip_special: bool = False) -> str:
        """The text of token ids, special tokens written out unless skipped."""
        return self._tokenizer.decode(ids, skip_special_tokens=skip_special)

    def token_text(self, token: int) -> str:
        """The text of one token alone."""
        text = self._texts.get(token)
        if text is None:
            text = self._texts[token] = self._tokenizer.decode([token], skip_special_tokens=False)
        return text

    def render(self, messages: list[dict[str, Any]], generation_prompt: bool, **variables: Any) -> str:
        """The prompt text of a chat. Raises `BadRequest` when the template refuses the messages."""
        try:
            text: str = self._template.render(
                messages=messages, add_generation_prompt=generation_prompt, **self._specials, **variables
            )
        except TemplateError as error:
            raise BadRequest(f"the chat template refuses these messages: {error}", "messages") from error
        return text


def _content(token: str | dict[str, Any]) -> str:
    return token if isinstance(token, str) else str(token["content"])


def _template_source(folder: Path, config: dict[str, Any]) -> str:
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    # A base model has no template: its messages are simply put one after the other.
    return config.get("chat_template") or "{% for message in messages %}{{ message.content }}\n{% endfor %}"


def _compile(source: str) -> Any:
    def refuse(message: str) -> NoReturn:
        raise TemplateError(message)

    # The settings and helpers that transformers gives to chat templates.
    environment = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[loopcontrols]
    )
    environment.filters["tojson"] = lambda value, indent=None: json.dumps(
        value, ensure_ascii=False, indent=indent
    )
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.now().strftime(form)
    return environment.from_string(source)
