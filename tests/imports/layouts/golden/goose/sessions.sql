CREATE TABLE schema_version (version INTEGER PRIMARY KEY, applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP);
INSERT INTO schema_version (version) VALUES (15);
CREATE TABLE sessions (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL DEFAULT '',
    description TEXT NOT NULL DEFAULT '',
    user_set_name BOOLEAN DEFAULT FALSE,
    session_type TEXT NOT NULL DEFAULT 'user',
    working_dir TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    extension_data TEXT DEFAULT '{}',
    input_tokens INTEGER,
    output_tokens INTEGER,
    accumulated_input_tokens INTEGER,
    accumulated_output_tokens INTEGER,
    accumulated_cost REAL,
    recipe_json TEXT,
    provider_name TEXT,
    model_config_json TEXT
);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    message_id TEXT,
    session_id TEXT NOT NULL REFERENCES sessions(id),
    role TEXT NOT NULL,
    content_json TEXT NOT NULL,
    created_timestamp INTEGER NOT NULL,
    timestamp TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    tokens INTEGER,
    metadata_json TEXT
);
INSERT INTO sessions VALUES ('20260101_1', 'Fix the parser', '', 0, 'user', '/w', '2026-01-01 00:00:00', '{"todo.v0": {"content": ""}}', 20, 5, 60, 14, 0.02, NULL, 'anthropic', '{"model_name": "claude-x"}');
INSERT INTO sessions VALUES ('20260101_2', 'Empty', '', 0, 'user', '/w', '2026-01-01 00:00:00', '{}', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
INSERT INTO messages (session_id, role, content_json, created_timestamp, metadata_json) VALUES
 ('20260101_1', 'user', '[{"type": "text", "text": "An old question."}]', 1767225500, '{"userVisible": true, "agentVisible": false}'),
 ('20260101_1', 'user', '[{"type": "text", "text": "Fix the parser."}]', 1767225600, '{"userVisible": true, "agentVisible": true}'),
 ('20260101_1', 'assistant', '[{"type": "thinking", "thinking": "Look first.", "signature": "s"}, {"type": "text", "text": "I look."}, {"type": "toolRequest", "id": "c1", "toolCall": {"status": "success", "value": {"name": "developer__shell", "arguments": {"command": "cat parser.py"}}}}, {"type": "toolRequest", "id": "c2", "toolCall": {"status": "success", "value": {"name": "developer__screen_capture", "arguments": {}}}}]', 1767225601, NULL),
 ('20260101_1', 'user', '[{"type": "toolResponse", "id": "c1", "toolResult": {"status": "success", "value": {"content": [{"type": "text", "text": "def parse(): ..."}], "isError": false}}}, {"type": "toolResponse", "id": "c2", "toolResult": {"status": "success", "value": [{"type": "image", "data": "aGk=", "mimeType": "image/png"}]}}]', 1767225602, NULL),
 ('20260101_1', 'assistant', '[{"type": "toolRequest", "id": "c3", "toolCall": {"status": "error", "error": "-32602: not JSON"}}]', 1767225603, NULL),
 ('20260101_1', 'user', '[{"type": "toolResponse", "id": "c3", "toolResult": {"status": "error", "error": "-32602: not JSON"}}]', 1767225604, NULL),
 ('20260101_1', 'assistant', '[{"type": "systemNotification", "notificationType": "inlineMessage", "msg": "Compacting"}]', 1767225605, '{"userVisible": true, "agentVisible": false}'),
 ('20260101_1', 'assistant', '[{"type": "text", "text": "Fixed."}]', 1767225606, NULL);
