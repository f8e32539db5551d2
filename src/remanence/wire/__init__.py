"""Messages and provider formats: parsing, rendering, pairing of tool calls, validation."""
