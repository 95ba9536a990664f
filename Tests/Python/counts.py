# SPDX-License-Identifier: Apache-2.0
"""Numbers on the command line of the harnesses."""


def positive_number(text: str) -> int:
    """A number of trials: with less than one a harness would find nothing wrong. For `type` of argparse."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number
