"""The hash of words and n-grams in plain Python."""

SEED, PRIME, MIX, COMBINE = 0xCBF29CE484222325, 0x100000001B3, 0xFF51AFD7ED558CCD, 0xC2B2AE3D27D4EB4F
MASK = 2**64 - 1


def mix_bits(h):
    h ^= h >> 33
    h = h * MIX & MASK
    return h ^ h >> 33


def hash_word(word):
    h = SEED
    for byte in word.encode("utf-8", "surrogatepass"):
        h = (h ^ byte) * PRIME & MASK
    return mix_bits(h)


def hash_ngram(hashes):
    h = hashes[0]
    for other in hashes[1:]:
        h = mix_bits((h * COMBINE + other) & MASK)
    return h
