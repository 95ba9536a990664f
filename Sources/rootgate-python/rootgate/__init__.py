# SPDX-License-Identifier: Apache-2.0
"""A client for the Rootgate protocol, version 1, written from the specification alone."""
