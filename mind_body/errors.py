"""Shapes: every error that crosses a module wall, drawn once.

    MindBodyError               a sentence for a person: it names the thing and the way out
    ├── OperatorError           an operator must act; exit 78, never restarted
    │   ├── ConfigError         a file of ours that cannot be used as it is written
    │   ├── MindFileError       a mind.db that is newer than the code, corrupt, or not there
    │   ├── LedgerError         the same of the lease's ledger
    │   └── CredentialError     a credential that is missing, refused, or readable by others
    ├── StorageError            the disk said no (full, read-only, I/O): the transaction did not happen
    ├── MatrixError             the homeserver said no
    │   ├── MatrixUnreachable   no answer, a lost connection, 5xx: the same request may be sent again
    │   ├── MatrixLimited       429: carries how long to wait
    │   ├── MatrixUnauthorised  401: the token is worth nothing any more
    │   └── MatrixRefused       any other 4xx: sending it again changes nothing
    ├── ChildError              a child process could not be started or spoke nonsense
    └── SessionGone             a model session cannot be resumed where the record left it; it is begun anew

Foreign errors are translated once, in the door that meets them, with the foreign one as `__cause__`.
"""

EXIT_DONE = 0
EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_OPERATOR = 78
"""EX_CONFIG of sysexits.h: restarting changes nothing until somebody acts."""


class MindBodyError(Exception):
    """A sentence for a person."""

    exit_code = EXIT_FAILED


class OperatorError(MindBodyError):
    """Nothing gets better until an operator acts."""

    exit_code = EXIT_OPERATOR


class ConfigError(OperatorError):
    """A file of ours that cannot be used as it is written."""


class MindFileError(OperatorError):
    """A mind.db that is newer than the code, corrupt, or not there."""


class LedgerError(OperatorError):
    """A ledger that is newer than the code, corrupt, or gone. Nothing is lent on it."""


class CredentialError(OperatorError):
    """A credential that is missing, refused by its server, or readable by others."""


class StorageError(MindBodyError):
    """The disk said no; the transaction did not happen."""


class MatrixError(MindBodyError):
    """The homeserver said no."""


class MatrixUnreachable(MatrixError):
    """No usable answer: the same request may be sent again."""


class MatrixLimited(MatrixError):
    """429 M_LIMIT_EXCEEDED."""

    def __init__(self, sentence: str, retry_after_ms: int) -> None:
        super().__init__(sentence)
        self.retry_after_ms = retry_after_ms


class MatrixUnauthorised(MatrixError):
    """401 M_UNKNOWN_TOKEN or M_MISSING_TOKEN."""


class MatrixRefused(MatrixError):
    """A 4xx that sending again does not change. `code` is the Matrix errcode."""

    def __init__(self, sentence: str, code: str) -> None:
        super().__init__(sentence)
        self.code = code


class ChildError(MindBodyError):
    """A child process could not be started, or ended before it said what it must."""


class SessionGone(MindBodyError):
    """A cursor that leads nowhere, or not to our last recorded turn: the session is begun anew from the record."""
