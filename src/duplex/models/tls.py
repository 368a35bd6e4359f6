"""Why a TLS connection was not made, in words: certificates are verified everywhere.

Nothing here opens or weakens a connection, and there is no way to turn verification off;
a server with a certificate of its own is trusted by ``SSL_CERT_FILE``. Whoever opens
connections asks it about the error that came of one.
"""

from __future__ import annotations

import ssl

MEND = "a certificate of your own is trusted when SSL_CERT_FILE names it"


def tls_problem(error: BaseException) -> str | None:
    """Return what an error says of TLS, looking at what caused it; None when nothing."""
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        if isinstance(found, ssl.SSLCertVerificationError):
            return f"its certificate is not trusted ({found.verify_message.lower()}); {MEND}"
        if isinstance(found, ssl.SSLError):
            return f"no TLS connection came about ({(found.reason or 'unknown').lower()})"
        found = found.__cause__ or found.__context__
    # Some transports keep only the words of what went wrong.
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return f"its certificate is not trusted; {MEND}"
    return None
