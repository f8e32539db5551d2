"""The mark that replaces a secret."""

MARK = "[secret]"
