"""Writing of the files of fitted weights, which `remanence.observers.learned.weights` reads."""

import json
import zlib

from remanence.observers.learned.weights import FORMAT, LENGTH_BYTES, Weights

_HEADER = ("buckets", "heads", "scales", "biases", "cutoffs", "strict")
_MAX_DISTANCE = 255


def dump(weights: Weights) -> bytes:
    """Weights as the bytes of a file: a header, then the numbers of each head that are not 0.

    A number is stored with its distance to the one before, of at most a byte: further ones are
    reached by a 0 in between.
    """
    distances, numbers = bytearray(), bytearray()
    width = len(weights.heads)
    for column in range(width):
        last = -1
        for place, number in enumerate(weights.rows[column::width]):
            if number or place - last == _MAX_DISTANCE or place + 1 == weights.buckets:
                distances.append(place - last)
                numbers.append(number)
                last = place
    header = {name: getattr(weights, name) for name in _HEADER}
    head = json.dumps({"format": FORMAT, **header}, sort_keys=True).encode()
    # No number foretells the next: looking for repetitions would only cost space.
    packing = zlib.compressobj(strategy=zlib.Z_HUFFMAN_ONLY)
    plain = len(head).to_bytes(LENGTH_BYTES, "little") + head + distances + numbers
    return packing.compress(plain) + packing.flush()
