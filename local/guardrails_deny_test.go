package main

import (
	"encoding/json"
	"testing"
)

// logOf reads the newest log as administrators see it.
func logOf(t *testing.T, r *running, id string) (log map[string]any, raw string) {
	t.Helper()
	log = r.admin("GET", "/logs/"+id, "")
	text, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	return log, string(text)
}
