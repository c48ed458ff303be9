"""The one time model: how much work a request is, and when each part of its answer is due.

* Tokens of a text are estimated: one for every four bytes of UTF-8, rounded up. A chat message costs 4 more (its role
  and its marks), a picture in a prompt costs 256.
* A prompt takes `tokens / prefill rate` seconds, then token k of the answer is due `k / decode rate` seconds later.
* An answer has exactly as many tokens as `max_tokens` asks for, so that work is known in advance (real servers are
  measured the same way, with `ignore_eos`); without it its length comes from the seed. The context window cuts both.
* A picture takes `image_seconds` at 1024 by 1024 and 20 steps, and in proportion to pixels times steps.
* Sound: 50 frames a second are read as prompt tokens (Whisper's encoder), of 16 kHz 16-bit mono.
"""

from dataclasses import dataclass

BYTES_PER_TOKEN = 4
MESSAGE_TOKENS = 4
IMAGE_PROMPT_TOKENS = 256
AUDIO_BYTES_PER_SECOND = 32_000
AUDIO_TOKENS_PER_SECOND = 50
REFERENCE_PIXELS_STEPS = 1024 * 1024 * 20


def tokens_of(text: str) -> int:
    """Estimated tokens of a text; none of an empty one."""
    return -(-len(text.encode()) // BYTES_PER_TOKEN)


def audio_tokens(byte_count: int) -> int:
    """Tokens that a recording is read as; at least one."""
    return max(1, byte_count * AUDIO_TOKENS_PER_SECOND // AUDIO_BYTES_PER_SECOND)


@dataclass(frozen=True, slots=True)
class Speed:
    """Rates of one slot; 0 = takes no time."""

    prefill_tokens_per_second: float
    decode_tokens_per_second: float
    image_seconds: float

    def prefill_s(self, tokens: int) -> float:
        """Seconds from the start until the first token can be computed."""
        return tokens / self.prefill_tokens_per_second if self.prefill_tokens_per_second else 0.0

    def decode_s(self, tokens: int) -> float:
        """Seconds from the end of prefill until `tokens` tokens are there."""
        return tokens / self.decode_tokens_per_second if self.decode_tokens_per_second else 0.0

    def due(self, elapsed_s: float, prompt_tokens: int, output_tokens: int) -> int:
        """How many tokens of the answer are there after `elapsed_s` in a slot."""
        decoding_s = elapsed_s - self.prefill_s(prompt_tokens)
        if decoding_s < 0:
            return 0
        if not self.decode_tokens_per_second:
            return output_tokens
        # A hair more than nothing, so that a wake-up exactly on time is not one token early.
        return min(output_tokens, int(decoding_s * self.decode_tokens_per_second + 1e-6))

    def image_s(self, width: int, height: int, steps: int, count: int) -> float:
        """Seconds for `count` pictures."""
        return self.image_seconds * width * height * steps * count / REFERENCE_PIXELS_STEPS


def output_tokens(asked: int | None, natural: int, prompt_tokens: int, context_window: int) -> tuple[int, bool]:
    """Length of an answer, and whether it was cut (`finish_reason: length`) rather than ended by itself."""
    room = max(0, context_window - prompt_tokens)
    wanted = natural if asked is None or asked < 0 else asked
    return min(wanted, room), asked is not None or wanted > room
