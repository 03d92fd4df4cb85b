"""Door: a private Synapse: its configuration, its start command, its users. For `mind demo` and for the tests.

1. Everything lies in one throwaway directory; nothing is federated, nothing leaves loopback, no keys of others are asked for.
2. Who starts the process is not decided here: the demo goes through host/process.py, the tests through a plain subprocess.
3. Users are made with the registration shared secret (Synapse admin API): no captcha, no open registration.
"""

import base64
import hashlib
import hmac
import importlib.util
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from secrets import token_bytes, token_hex
from typing import Any

from mind_body.host.secrets import write_secret

SERVER_NAME = "mind.localhost"
"""What is after the colon in user ids; never resolved."""
_NO_LIMIT = {"per_second": 100_000, "burst_count": 100_000}
_LIMITERS = ("rc_message", "rc_registration", "rc_admin_redaction", "rc_delayed_event_mgmt", "rc_reports", "rc_room_creation")


@dataclass(frozen=True, slots=True)
class SynapseOptions:
    """What a test may want otherwise. Synapse's own defaults where a key is left out of `limits`' dictionaries."""

    port: int
    registration_secret: str = field(repr=False)
    limits: dict[str, Any] | None = None
    """None switches every rate limit off; a dictionary of `rc_…` settings is used as it is, the rest being Synapse's defaults."""
    access_token_ms: int | None = None
    """Refreshable access tokens live so long; None for tokens that do not end."""
    extra: dict[str, Any] = field(default_factory=dict)
    server_name: str = SERVER_NAME


def synapse_is_installed() -> bool:
    return importlib.util.find_spec("synapse") is not None


def write_synapse_config(directory: Path, options: SynapseOptions) -> Path:
    """The configuration file; its directory and the signing key are made. JSON is YAML."""
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / "homeserver.yaml"
    write_secret(path, json.dumps(_config(directory, options), indent=1))
    (directory / "log.yaml").write_text(json.dumps(_log_config(directory)))
    key = directory / "signing.key"
    if not key.exists():
        # As `--generate-keys` makes it (signedjson's format), without the seconds that another Python with Synapse in it takes.
        write_secret(key, f"ed25519 a_{token_hex(2)} {base64.b64encode(token_bytes(32)).decode().rstrip('=')}")
    return path


def start_command(config: Path) -> list[str]:
    """Runs in the foreground until SIGTERM; answers about three seconds later (wire.md §8)."""
    return [sys.executable, "-m", "synapse.app.homeserver", "--config-path", str(config)]


def registration_mac(secret: str, nonce: str, user: str, password: str, *, admin: bool = False) -> str:
    """The proof that the shared-secret registration asks for (Synapse: docs/admin_api/register_api.md)."""
    parts = (nonce, user, password, "admin" if admin else "notadmin")
    return hmac.new(secret.encode(), "\x00".join(parts).encode(), hashlib.sha1).hexdigest()


def _config(directory: Path, options: SynapseOptions) -> dict[str, Any]:
    config: dict[str, Any] = {
        "server_name": options.server_name,
        "public_baseurl": f"http://127.0.0.1:{options.port}/",
        "pid_file": str(directory / "synapse.pid"),
        "listeners": [
            {
                "port": options.port,
                "bind_addresses": ["127.0.0.1"],
                "type": "http",
                "tls": False,
                "x_forwarded": False,
                "resources": [{"names": ["client"], "compress": False}],
            }
        ],
        "database": {"name": "sqlite3", "args": {"database": str(directory / "homeserver.db")}},
        "media_store_path": str(directory / "media"),
        "signing_key_path": str(directory / "signing.key"),
        "log_config": str(directory / "log.yaml"),
        "registration_shared_secret": options.registration_secret,
        "macaroon_secret_key": options.registration_secret,
        "form_secret": options.registration_secret,
        "report_stats": False,
        "trusted_key_servers": [],
        "suppress_key_server_warning": True,
        "enable_registration": False,
        "presence": {"enabled": False},
        # bcrypt at Synapse's default of 12 rounds costs a quarter of a second per user and login; nothing here is worth that.
        "bcrypt_rounds": 4,
        "federation_domain_whitelist": [],
        "encryption_enabled_by_default_for_room_type": "off",
    }
    if options.limits is None:
        config |= _without_limits()
    else:
        config |= options.limits
    if options.access_token_ms is not None:
        config["refreshable_access_token_lifetime"] = f"{options.access_token_ms}ms"
        config["nonrefreshable_access_token_lifetime"] = f"{options.access_token_ms}ms"
    return config | options.extra


def _without_limits() -> dict[str, Any]:
    return {
        **dict.fromkeys(_LIMITERS, _NO_LIMIT),
        "rc_login": {"address": _NO_LIMIT, "account": _NO_LIMIT, "failed_attempts": _NO_LIMIT},
        "rc_joins": {"local": _NO_LIMIT, "remote": _NO_LIMIT},
        "rc_joins_per_room": _NO_LIMIT,
        "rc_invites": {"per_room": _NO_LIMIT, "per_user": _NO_LIMIT, "per_issuer": _NO_LIMIT},
    }


def _log_config(directory: Path) -> dict[str, Any]:
    return {
        "version": 1,
        "formatters": {"plain": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s"}},
        "handlers": {
            "file": {"class": "logging.FileHandler", "formatter": "plain", "filename": str(directory / "synapse.log")},
        },
        "root": {"level": "WARNING", "handlers": ["file"]},
        "disable_existing_loggers": False,
    }
