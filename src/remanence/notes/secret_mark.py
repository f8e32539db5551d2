"""What stands in place of a secret."""

MARK = "[secret]"
