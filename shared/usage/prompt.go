package usage

import (
	"strconv"
	"strings"
)

// SetPrompt records which version of a prompt rendered the request's body, and the
// experiment that selected it, or "". PromptID contains all of them, as id@version or
// id@version@experiment: one field, which every gateway version can read.
func (r *Record) SetPrompt(id string, version int64, experiment string) {
	r.PromptID = id + "@" + strconv.FormatInt(version, 10)
	if experiment != "" {
		r.PromptID += "@" + experiment
	}
}

// PromptVersion returns the prompt's id and version; version 0 means unknown.
func (r *Record) PromptVersion() (id string, version int64) {
	id, rest, _ := strings.Cut(r.PromptID, "@")
	if n, _, _ := strings.Cut(rest, "@"); n != "" { // most requests have no prompt
		version, _ = strconv.ParseInt(n, 10, 64)
	}
	return id, version
}

// Experiment returns the id of the experiment that selected the version, or "".
func (r *Record) Experiment() string {
	_, rest, _ := strings.Cut(r.PromptID, "@")
	_, experiment, _ := strings.Cut(rest, "@")
	return experiment
}
