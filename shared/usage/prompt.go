package usage

import (
	"strconv"
	"strings"
)

// SetPrompt notes which version of a prompt made the request's body. PromptID holds
// both, as id@version.
func (r *Record) SetPrompt(id string, version int64) {
	r.PromptID = id + "@" + strconv.FormatInt(version, 10)
}

// PromptVersion is the prompt's id and the version that was used; 0: not known.
func (r *Record) PromptVersion() (id string, version int64) {
	id, n, _ := strings.Cut(r.PromptID, "@")
	version, _ = strconv.ParseInt(n, 10, 64)
	return id, version
}
