-- The tables of a journal, schema version 1. Statements end with ";" at the end of a line.

CREATE TABLE journal_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);

CREATE TABLE agent_step_journal (
    task_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    tool_name TEXT NOT NULL,
    idempotency_key TEXT NOT NULL,
    arguments_json TEXT NOT NULL,
    status TEXT NOT NULL CHECK (status IN ('pending', 'committed', 'failed', 'abandoned')),
    output_json TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    args_hash TEXT NOT NULL,
    effect TEXT NOT NULL CHECK (effect IN ('read_only', 'mutating', 'model')),
    key_generation INTEGER NOT NULL DEFAULT 0,
    starts INTEGER NOT NULL DEFAULT 0,
    hold_reason TEXT,
    hold_detail TEXT,
    hold_parameter TEXT,
    prompt_hashes TEXT,
    next_attempt_at TEXT,
    boot INTEGER NOT NULL,
    revision INTEGER NOT NULL,
    transport TEXT NOT NULL CHECK (transport IN ('python', 'http')),
    payload_sha256 TEXT NOT NULL,
    provider TEXT,
    profile_version TEXT,
    profile_json TEXT,
    output_complete INTEGER NOT NULL DEFAULT 1,
    error_json TEXT,
    drift_json TEXT,
    reference TEXT,
    alarm TEXT,
    committed_boot INTEGER,
    duration REAL,
    arguments_ref TEXT,
    output_ref TEXT,
    arguments_bytes INTEGER NOT NULL,
    output_bytes INTEGER,
    PRIMARY KEY (task_id, step_index)
);
CREATE INDEX step_pending ON agent_step_journal (updated_at, task_id, step_index) WHERE status = 'pending';
CREATE INDEX step_pending_task ON agent_step_journal (task_id) WHERE status = 'pending';
CREATE INDEX step_revision ON agent_step_journal (revision);

CREATE TABLE agent_task (
    task_id TEXT PRIMARY KEY NOT NULL,
    handler TEXT,
    input_json TEXT,
    agent TEXT NOT NULL,
    parent_id TEXT,
    status TEXT NOT NULL CHECK (status IN ('queued', 'running', 'waiting', 'completed', 'failed', 'cancelled')),
    wait_kind TEXT CHECK (wait_kind IN ('held', 'due', 'diverged', 'unwritten', 'unset', 'no_handler', 'interrupted',
        'broken_off', 'unresolved')),
    wait_step_task TEXT,
    wait_step_index INTEGER,
    wait_hold TEXT,
    wait_detail TEXT,
    output_json TEXT,
    error_json TEXT,
    next_attempt_at TEXT,
    boot INTEGER NOT NULL,
    conflict TEXT,
    conflict_at TEXT,
    cancel_reason TEXT,
    input_ref TEXT,
    output_ref TEXT,
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    ended_at TEXT,
    revision INTEGER NOT NULL
);
CREATE INDEX task_revision ON agent_task (revision);
CREATE INDEX task_unfinished ON agent_task (created_at, task_id) WHERE status IN ('queued', 'running', 'waiting');
CREATE INDEX task_parent ON agent_task (parent_id) WHERE parent_id IS NOT NULL;

CREATE TABLE agent_task_run (
    task_id TEXT NOT NULL,
    run INTEGER NOT NULL,
    boot INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    served_through INTEGER NOT NULL DEFAULT -1,
    ended TEXT,
    revision INTEGER NOT NULL,
    PRIMARY KEY (task_id, run)
);
CREATE INDEX run_revision ON agent_task_run (revision);

CREATE TABLE agent_request (
    task_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    key_generation INTEGER NOT NULL,
    method TEXT NOT NULL,
    url TEXT NOT NULL,
    headers_json TEXT NOT NULL,
    refs_json TEXT NOT NULL,
    body BLOB NOT NULL,
    sha256 TEXT NOT NULL,
    created_at TEXT NOT NULL,
    PRIMARY KEY (task_id, step_index, key_generation)
);

CREATE TABLE agent_step_attempt (
    task_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    key_generation INTEGER NOT NULL,
    boot INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    started_boottime REAL NOT NULL,
    os_boot_id TEXT NOT NULL,
    ended_at TEXT,
    verdict TEXT CHECK (verdict IN ('not_sent', 'no_effect', 'applied', 'in_progress', 'unknown')),
    kind TEXT,
    http_status INTEGER,
    detail TEXT NOT NULL DEFAULT '',
    retry_after_at TEXT,
    output_json TEXT,
    decision_id TEXT,
    duration REAL,
    sent_at TEXT,
    revision INTEGER NOT NULL,
    PRIMARY KEY (task_id, step_index, attempt)
);
CREATE INDEX attempt_revision ON agent_step_attempt (revision);

CREATE TABLE agent_evidence (
    id INTEGER PRIMARY KEY,
    message_id TEXT UNIQUE,
    task_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    asked_at TEXT NOT NULL,
    asked_boottime REAL NOT NULL,
    os_boot_id TEXT NOT NULL,
    answer TEXT NOT NULL CHECK (answer IN ('exists', 'absent', 'in_progress', 'unknown')),
    source TEXT NOT NULL,
    http_status INTEGER,
    detail TEXT NOT NULL DEFAULT '',
    output_json TEXT,
    in_flight INTEGER NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL
);
CREATE INDEX evidence_step ON agent_evidence (task_id, step_index, id);
CREATE INDEX evidence_revision ON agent_evidence (revision);

CREATE TABLE agent_model_call (
    id INTEGER PRIMARY KEY,
    task_id TEXT NOT NULL,
    step_index INTEGER NOT NULL,
    call INTEGER NOT NULL,
    boot INTEGER NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    state TEXT NOT NULL CHECK (state IN ('open', 'exact', 'partial', 'unknown')),
    api TEXT,
    model TEXT,
    request_model TEXT,
    response_id TEXT,
    raw_usage TEXT,
    in_uncached INTEGER,
    in_cache_read INTEGER,
    in_cache_write INTEGER,
    out_visible INTEGER,
    out_reasoning INTEGER,
    service_tier TEXT,
    flags TEXT NOT NULL DEFAULT '',
    revision INTEGER NOT NULL,
    UNIQUE (task_id, step_index, call)
);
CREATE INDEX model_call_revision ON agent_model_call (revision);
CREATE INDEX model_call_response ON agent_model_call (response_id) WHERE response_id IS NOT NULL;

CREATE TABLE agent_decision (
    message_id TEXT PRIMARY KEY NOT NULL,
    task_id TEXT NOT NULL,
    step_index INTEGER,
    kind TEXT NOT NULL,
    actor TEXT NOT NULL,
    reason TEXT NOT NULL,
    key TEXT,
    payload_sha256 TEXT,
    dispatches INTEGER,
    created_at TEXT NOT NULL,
    expires_at TEXT,
    applied_at TEXT NOT NULL,
    outcome TEXT NOT NULL CHECK (outcome IN ('applied', 'refused', 'expired', 'superseded')),
    outcome_detail TEXT NOT NULL DEFAULT '',
    output_json TEXT,
    reference TEXT,
    consumed_attempt INTEGER,
    revision INTEGER NOT NULL
);
CREATE INDEX decision_step ON agent_decision (task_id, step_index);
CREATE INDEX decision_revision ON agent_decision (revision);

CREATE TABLE agent_boot (
    boot INTEGER PRIMARY KEY,
    role TEXT NOT NULL CHECK (role IN ('agent', 'supervisor', 'cli', 'worker')),
    pid INTEGER NOT NULL,
    host TEXT NOT NULL,
    os_boot_id TEXT NOT NULL,
    started_at TEXT NOT NULL,
    ended_at TEXT,
    ended TEXT,
    recovery_model_calls INTEGER NOT NULL DEFAULT 0,
    clock_offset REAL NOT NULL DEFAULT 0,
    revision INTEGER NOT NULL
);

CREATE TABLE agent_body (sha256 TEXT PRIMARY KEY NOT NULL, body TEXT NOT NULL);
