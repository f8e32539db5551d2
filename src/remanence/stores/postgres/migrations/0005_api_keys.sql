-- Keys of clients of the service: `digest` is the SHA-256 of the token, `scopes` a JSON list.
CREATE TABLE api_keys (
  id TEXT COLLATE "C" PRIMARY KEY,
  name TEXT NOT NULL,
  tenant TEXT NOT NULL,
  scopes TEXT NOT NULL,
  created_at TEXT NOT NULL,
  expires_at TEXT,
  revoked_at TEXT,
  digest TEXT NOT NULL
);
