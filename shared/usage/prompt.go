package usage

import (
	"strconv"
	"strings"
)

// SetPrompt notes which version of a prompt made the request's body, and the experiment
// that chose it; "": none did. PromptID holds all, as id@version or
// id@version@experiment: one field, which every gateway can read.
func (r *Record) SetPrompt(id string, version int64, experiment string) {
	r.PromptID = id + "@" + strconv.FormatInt(version, 10)
	if experiment != "" {
		r.PromptID += "@" + experiment
	}
}

// PromptVersion is the prompt's id and the version that was used; 0: not known.
func (r *Record) PromptVersion() (id string, version int64) {
	id, rest, _ := strings.Cut(r.PromptID, "@")
	if n, _, _ := strings.Cut(rest, "@"); n != "" { // most requests have no prompt
		version, _ = strconv.ParseInt(n, 10, 64)
	}
	return id, version
}

// Experiment is the id of the experiment that chose the version; "": none did.
func (r *Record) Experiment() string {
	_, rest, _ := strings.Cut(r.PromptID, "@")
	_, experiment, _ := strings.Cut(rest, "@")
	return experiment
}
