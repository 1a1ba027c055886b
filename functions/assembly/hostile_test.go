package assembly_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"gateway/shared/store"
	"gateway/shared/testkit/admintest/drive"
)

// jsonRPC responds with the errors of its protocol.
const jsonRPC = "/mcp"

// TestHostileBodiesChangeNothing sends each writing route of the document bodies that its
// schema forbids. They must be rejected with the path of the field. No response is an internal
// error, and a rejected body leaves the tables as they were, byte for byte.
//
//lane:property
func TestHostileBodiesChangeNothing(t *testing.T) {
	t.Parallel()
	families := map[string][]*drive.Operation{}
	for _, op := range install(t, nil).doc.Operations {
		if op.Body != nil && !op.Alias && op.Tag != "inference" {
			families[op.Tag] = append(families[op.Tag], op)
		}
	}
	for tag := range families {
		t.Run(tag, func(t *testing.T) {
			t.Parallel()
			var rows *watched
			in := install(t, func(s store.Store) store.Store { rows = watch(s); return rows })
			in.user(rootKey, "member@example.com", "member", "first-space", "member")
			w := drive.NewResources(in.doc, in.as(rootKey))
			key := rootKey
			if tag == "feedback" { // which keys of workspaces alone may give
				key = in.serviceKey(in.must("GET", "/workspaces/first-space", rootKey, "")["id"].(string))
				w.New = func(string) string {
					return in.must("POST", "/feedback", key, `{"trace_id":"a-trace","value":1}`)["feedback_ids"].([]any)[0].(string)
				}
			}
			tried := 0
			for _, op := range families[tag] {
				in.t = t
				tried += hostile(t, in, w, rows, key, in.doc.At(op.Method, op.Path))
			}
			if tried < 30 {
				t.Errorf("only %d bodies", tried)
			}
		})
	}
}

// hostile tries one operation: first bodies that must be rejected, then bodies that may be
// accepted. It returns how many bodies were tried.
func hostile(t *testing.T, in *installation, w *drive.Resources, rows *watched, key string, op *drive.Operation) int {
	t.Helper()
	name := op.Method + " " + op.Path
	path, body, err := request(w, op, drive.Workspace)
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return 0
	}
	if !slices.ContainsFunc(op.Query, func(p drive.Param) bool { return p.Required }) {
		path, _, _ = strings.Cut(path, "?")
	}
	all := drive.Hostiles(op.Body, body)
	var perhaps []drive.InvalidInput
	before, mistakes := rows.dump(t), 0
	try := func(h drive.InvalidInput, wrong string) {
		done := rows.changes()
		status, answer := in.request(op.Method, path, key, h.Body)
		bad := ""
		if op.Path == jsonRPC {
			bad = judgeRPC(h, wrong, status, answer)
		} else if bad = judge(h, wrong, status, answer); op.Path == "/session" && (status == http.StatusUnauthorized || status == http.StatusTooManyRequests) && wrong == "" {
			bad = "" // the body is a credential, and wrong ones are limited
		}
		if bad == "" && status >= 300 && rows.changes() != done {
			bad = "refused and changed something"
		}
		if bad == "" {
			return
		}
		if mistakes++; mistakes <= 12 {
			t.Errorf("%s: %s, %s at %q: %d %.300s, sent %.200q; the schema: %.300s", bad, name, h.Name, h.Field, status, answer, h.Body, wrong)
		}
	}
	for _, h := range all {
		wrong := "no JSON"
		if !h.Broken || h.Name == "a list" { // which a few routes take
			wrong = in.checked.Validate(op.Method, op.Path, h.Body)
		}
		if wrong == "" || h.Name == "null" { // which in many a member is as absent
			wrong = ""
			perhaps = append(perhaps, h)
			continue
		}
		try(h, wrong)
	}
	if after := rows.dump(t); after != before {
		t.Errorf("%s: refused bodies changed the tables:\n%s", name, firstDifference(before, after))
	}
	for _, h := range perhaps {
		try(h, "")
	}
	if mistakes > 12 {
		t.Errorf("%s: and %d more", name, mistakes-12)
	}
	return len(all)
}

// judge returns the fault of a response to a hostile body; wrong states how the body violates
// the schema.
func judge(h drive.InvalidInput, wrong string, status int, answer []byte) string {
	switch {
	case status < 300 && wrong != "":
		return "taken"
	case status == http.StatusBadGateway && wrong == "": // the body is fine, and the host that it names is not there
	case status < 300, h.Name == "too large" && status == http.StatusRequestEntityTooLarge:
	case !slices.Contains([]int{400, 403, 404, 409}, status), wrong != "" && status != 400 && status != 403:
		return "another refusal"
	case wrong != "" && status == 400 && !names(answer, h.Field):
		return "the field is not named"
	}
	return ""
}

// judgeRPC returns the fault of a JSON-RPC response.
func judgeRPC(h drive.InvalidInput, wrong string, status int, answer []byte) string {
	var m struct {
		Version string `json:"jsonrpc"`
		Result  json.RawMessage
		Error   *struct{ Code int }
	}
	if strings.HasPrefix(h.Name, "half a surrogate") {
		wrong = "" // is a text of JSON, and the tool's business
	}
	switch {
	case status == http.StatusAccepted && wrong == "": // a notification
	case json.Unmarshal(answer, &m) != nil || m.Version != "2.0" || (m.Result == nil) == (m.Error == nil):
		return "no message"
	case m.Error == nil && wrong != "":
		return "taken"
	case m.Error != nil && (m.Error.Code == -32603 || !slices.Contains([]int{200, 400, 404, 413}, status)):
		return "another refusal"
	}
	return ""
}

// request is a path and a body that an operation accepts, or would accept if the thing were
// in another state.
func request(w *drive.Resources, op *drive.Operation, place drive.Place) (string, map[string]any, error) {
	var err error
	for _, enums := range w.Variants(op) {
		var path string
		var body map[string]any
		if path, err = w.Path(op, place, enums); err != nil {
			continue
		}
		if w.Doc.Linked(op, "read") == nil {
			body, err = w.Body(op, place)
			return path, body, err
		}
		var made *drive.Resource
		if made, err = w.Create(op, place, enums); err == nil {
			return path, made.Sent, nil
		}
	}
	return "", nil, err
}

// names reports whether an error names a field, its parent, or its content.
func names(answer []byte, field string) bool {
	var of struct{ Error, Error_description string } // RFC 6749
	if json.Unmarshal(answer, &of) == nil && of.Error != "" {
		top, _, _ := strings.Cut(field, ".")
		top, _, _ = strings.Cut(top, "[")
		return strings.Contains(of.Error_description, top)
	}
	var b struct {
		Data  struct{ Errors []struct{ Field string } }
		Error struct{ Param string }
	}
	if json.Unmarshal(answer, &b) != nil {
		return false
	}
	fields := []string{b.Error.Param}
	for _, e := range b.Data.Errors {
		fields = append(fields, e.Field)
	}
	return field == "" || slices.ContainsFunc(fields, func(f string) bool {
		return f != "" && (strings.HasPrefix(f, field) || strings.HasPrefix(field, f))
	})
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range y {
		if i >= len(x) || x[i] != y[i] {
			was := ""
			if i < len(x) {
				was = x[i]
			}
			return fmt.Sprintf("%.600s\n%.600s", was, y[i])
		}
	}
	return "rows are gone"
}
