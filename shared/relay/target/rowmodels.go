package target

import (
	"encoding/json"
	"net/http"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/relay/routes"
)

// OpenAIRows is the field that names the file of rows at OpenAI-compatible hosts, where the
// gateway can read it.
const OpenAIRows = "input_file_id"

// RowsFile returns the field by which a new batch names the file of its rows, which are bodies
// of requests that are not in the request; "" if the request creates no such batch. Of several
// fields it is one other than OpenAIRows.
func RowsFile(escapedPath string, body []byte) (field string) {
	if len(body) == 0 || !routes.StartsBatch(http.MethodPost, escapedPath) {
		return ""
	}
	found, _ := reference.Find(body) // a body that cannot be read is rejected where it matters
	for i := range found {
		switch r := &found[i]; {
		case strings.Contains("."+r.Field, ".requests"): // in rows that are in the body
		case r.Kind == reference.File, r.Kind == reference.Storage, r.Kind == reference.Dataset:
			if field = r.Field; field != OpenAIRows {
				return field
			}
		}
	}
	return field
}

// EvalRowsElsewhere reports whether a request starts a run of an evaluation with rows outside
// its body: they are in a file, or are stored responses that the provider chooses.
func EvalRowsElsewhere(escapedPath string, body []byte) bool {
	segments := routes.Segments(escapedPath)
	n := len(segments)
	if n < 3 || !strings.EqualFold(segments[n-1], "runs") || !strings.EqualFold(segments[n-3], "evals") {
		return false
	}
	at := body
	for _, name := range [...]string{"data_source", "source", "type"} {
		var fields map[string]json.RawMessage
		if json.Unmarshal(at, &fields) != nil {
			return true
		}
		at = fields[name]
	}
	return string(at) != `"file_content"`
}

// mayReadRows rejects a new batch with rows in a file that is not read here, if several
// workspaces use the credential: the rows may name objects of others.
func mayReadRows(tg *Target) error {
	if tg.Req.Route.BodyMode != routes.Raw || tg.Req.Req.Method != http.MethodPost {
		return nil
	}
	field, at := RowsFile(tg.Body.RawPath(), tg.Body.In), tg.Body.StoredPath()
	if field == "" || field == OpenAIRows && at.Collection == "batches" && at.ID == "" {
		return nil
	}
	return fault.Newf(fault.NotAllowed, field, "The credential is shared by several workspaces, and the objects that the rows in this file name cannot be checked; create the batch at %s/batches, or send its rows in the body", routes.BasePath)
}
