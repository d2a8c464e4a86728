"""The two HTML pages: one file each, nothing from elsewhere, and a policy that lets nothing else run."""

from __future__ import annotations

import base64
import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from fastapi.responses import Response

_FOLDER = Path(__file__).parent
_SCRIPT = re.compile(rb"<script>(.*?)</script>", re.DOTALL)
_STYLE = re.compile(rb"<style>(.*?)</style>", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Page:
    """A page and the policy that fits it."""

    content: bytes
    policy: str

    @classmethod
    def load(cls, name: str) -> Page:
        """The page in a file beside this one."""
        content = (_FOLDER / name).read_bytes()
        policy = (
            f"default-src 'none'; script-src {_hashes(_SCRIPT, content)}; style-src {_hashes(_STYLE, content)}; "
            "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        return cls(content, policy)

    def response(self) -> Response:
        """The page as an answer."""
        headers = {
            "Content-Security-Policy": self.policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
        }
        return Response(self.content, media_type="text/html; charset=utf-8", headers=headers)


def _hashes(pattern: re.Pattern[bytes], content: bytes) -> str:
    digests = (base64.b64encode(hashlib.sha256(each).digest()).decode() for each in pattern.findall(content))
    return " ".join(f"'sha256-{digest}'" for digest in digests)


ADDRESSES = Page.load("addresses.html")
DOCS = Page.load("docs.html")
