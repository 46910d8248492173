"""Which 32 bytes are an Ed25519 public key that proves something.

The usual verifiers accept keys under which one signature fits many messages (points of small order) and
second spellings of one key (y not reduced). A key is checked here once, when it is registered or read, so
that verification means what it says. The arithmetic is on public values only: its timing tells nothing.
"""

from functools import lru_cache

from protocol.errors import SignatureError

SIZE = 32
PRIME = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, PRIME) % PRIME
_ROOT_OF_MINUS_ONE = pow(2, (PRIME - 1) // 4, PRIME)

# Extended coordinates (X, Y, Z, T) with x = X/Z, y = Y/Z and x*y = T/Z.
Point = tuple[int, int, int, int]
IDENTITY: Point = (0, 1, 1, 0)


@lru_cache(maxsize=1024)
def check_public_key(raw: bytes) -> None:
    """Return if the bytes are the one spelling of a point of prime order."""
    if len(raw) != SIZE:
        raise SignatureError("KEY_LENGTH", f"a public key has {SIZE} bytes, not {len(raw)}")
    point = _decompress(raw)
    if _is_identity(_double(_double(_double(point)))):
        raise SignatureError("KEY_WEAK", "the public key is a point of small order")
    if not _is_identity(_multiply(ORDER, point)):
        raise SignatureError("KEY_WEAK", "the public key is not in the group of prime order")


def _decompress(raw: bytes) -> Point:
    number = int.from_bytes(raw, "little")
    sign, y = number >> 255, number & (2**255 - 1)
    if y >= PRIME:
        raise SignatureError("KEY_WEAK", "the public key is a second spelling of another")
    numerator, denominator = (y * y - 1) % PRIME, (D * y * y + 1) % PRIME
    # The candidate root of numerator / denominator, by one power instead of an inverse and a root.
    x = numerator * denominator**3 * pow(numerator * denominator**7, (PRIME - 5) // 8, PRIME) % PRIME
    if (denominator * x * x - numerator) % PRIME:
        x = x * _ROOT_OF_MINUS_ONE % PRIME
    if (denominator * x * x - numerator) % PRIME:
        raise SignatureError("KEY_WEAK", "the public key is no point of the curve")
    # A sign on x = 0 would be a second spelling too, but y = 1 and y = -1 are of small order anyway.
    if x & 1 != sign:
        x = PRIME - x
    return x, y, 1, x * y % PRIME


def _double(point: Point) -> Point:
    x, y, z, _ = point
    a, b, c = x * x, y * y, 2 * z * z
    h = a + b
    e = h - (x + y) * (x + y)
    g = a - b
    f = c + g
    return e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME


def _add(left: Point, right: Point) -> Point:
    x1, y1, z1, t1 = left
    x2, y2, z2, t2 = right
    a, b = (y1 - x1) * (y2 - x2) % PRIME, (y1 + x1) * (y2 + x2) % PRIME
    c, d = 2 * D * t1 * t2 % PRIME, 2 * z1 * z2
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % PRIME, g * h % PRIME, f * g % PRIME, e * h % PRIME


def _multiply(scalar: int, point: Point) -> Point:
    result = IDENTITY
    for bit in bin(scalar)[2:]:
        result = _double(result)
        if bit == "1":
            result = _add(result, point)
    return result


def _is_identity(point: Point) -> bool:
    x, y, z, _ = point
    return x % PRIME == 0 and (y - z) % PRIME == 0
