package ownership

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/relay/form"
)

// Path is a path to objects stored at a provider.
type Path struct {
	Collection string // files, batches, jobs ...; "" when the path names none
	ID         string // "" for the collection itself
	Below      bool   // the path continues after the id
	Ambiguous  bool   // the path is ambiguous
}

// collections are the path segments that providers follow with ids of stored objects. Those
// after "fine_tuning" are "jobs" and "checkpoints", that after "chat" is "completions".
var collections = map[string]bool{
	"files": true, "batches": true, "assistants": true, "threads": true, "vector_stores": true, "responses": true, "uploads": true,
	"conversations": true, "skills": true, "webhook_endpoints": true, "containers": true, "evals": true, "videos": true, "datasets": true, "cachedcontents": true, "tunedmodels": true,
	"interactions": true, "filesearchstores": true, "corpora": true, "ragcorpora": true, "operations": true, "batchpredictionjobs": true, "tuningjobs": true,
	"libraries": true, "connectors": true, "embed-jobs": true, "finetuned-models": true, "fine-tunes": true, "async-invoke": true,
}

// operationVerbs end the path of a model, and start an operation that the provider stores.
var operationVerbs = map[string]string{"predictlongrunning": "operations", "batchgeneratecontent": "batches", "asyncbatchembedcontent": "batches"}

// withoutVerb returns the id of a segment with a method of Google's: files/abc:download.
func withoutVerb(segment string) string {
	id, verb, ok := strings.Cut(segment, ":")
	if !ok || id == "" || verb == "" || strings.Trim(strings.ToLower(verb), "abcdefghijklmnopqrstuvwxyz") != "" {
		return segment // an ARN, an address, a model
	}
	return id
}

// collectionAt reports whether a segment names a collection.
func collectionAt(segments []string, i int) (string, bool) {
	name := strings.ToLower(segments[i])
	switch {
	case collections[name]:
		return name, true
	case name == "jobs", name == "checkpoints":
		return name, i > 0 && (strings.EqualFold(segments[i-1], "fine_tuning") || name == "jobs" && strings.EqualFold(segments[i-1], "batch"))
	case name == "completions":
		return "chat/completions", i > 0 && strings.EqualFold(segments[i-1], "chat")
	case name == "voices", name == "voice_consents":
		return name, i > 0 && strings.EqualFold(segments[i-1], "audio")
	case name == "characters":
		return name, i > 0 && strings.EqualFold(segments[i-1], "videos")
	case name == "models":
		return name, true
	}
	return "", false
}

// verbs appear in the position of ids, but name an action: POST /threads/runs creates a thread
// and runs it.
var verbs = map[string]map[string]bool{
	"threads":   {"runs": true},
	"responses": {"compact": true, "input_tokens": true},
	"videos":    {"edits": true, "extensions": true, "characters": true},
}

// PathOf finds the first collection in an escaped path, after any prefix, and the id that
// follows it.
func PathOf(escapedPath string) Path {
	s := pathAmong(strings.Split(escapedPath, "/"))
	plain, err := url.PathUnescape(escapedPath)
	if err != nil {
		s.Ambiguous = true
		return s
	}
	// A provider may treat an escaped slash as a slash, resolve dots, and ignore everything
	// after a semicolon.
	segments := strings.FieldsFunc(plain, func(r rune) bool { return r == '/' || r == '\\' })
	for i, seg := range segments {
		s.Ambiguous = s.Ambiguous || seg == "." || seg == ".."
		segments[i], _, _ = strings.Cut(seg, ";")
	}
	s.Ambiguous = s.Ambiguous || strings.ContainsAny(plain, `\;`)
	if s.Collection == "" && plain != escapedPath || s.Ambiguous {
		if other := pathAmong(segments); s.Collection == "" {
			s, s.Ambiguous = other, true
		}
	}
	return s
}

func pathAmong(segments []string) (s Path) {
	kept := segments[:0:0]
	for _, seg := range segments {
		if seg == "" {
			continue
		}
		if plain, err := url.PathUnescape(seg); err == nil {
			seg = plain
		}
		kept = append(kept, seg)
	}
	for i := 0; i < len(kept); i++ {
		name, ok := collectionAt(kept, i)
		if !ok {
			continue
		}
		if i+1 < len(kept) {
			if below, ok := collectionAt(kept, i+1); ok && name == "videos" {
				name, i = below, i+1
			}
		}
		if name == "models" && i+1 < len(kept) {
			if i+2 < len(kept) && strings.EqualFold(kept[i+2], "operations") {
				name, i = "operations", i+2
			} else if at := strings.LastIndexByte(kept[i+1], ':'); at >= 0 && operationVerbs[strings.ToLower(kept[i+1][at+1:])] != "" {
				return Path{Collection: operationVerbs[strings.ToLower(kept[i+1][at+1:])]}
			}
		}
		s.Collection = name
		if i+1 < len(kept) {
			s.ID, s.Below = kept[i+1], i+2 < len(kept)
			if name != "models" && name != "jobs" && name != "checkpoints" {
				s.ID = withoutVerb(s.ID)
			}
		}
		if verbs[name][s.ID] && !s.Below {
			s.ID = ""
		}
		return s
	}
	return s
}

// FormsNameObjects reports whether the fields of a form for the path may name stored objects.
// Forms of the other paths contain only content.
func (s *Path) FormsNameObjects() bool {
	return s.Collection != "" && s.Collection != "models" && !s.TakesUploads()
}

// TakesUploads reports whether the path accepts uploads with fields that only describe the file.
func (s *Path) TakesUploads() bool {
	return s.Collection == "files" || s.Collection == "uploads" || s.Collection == "skills"
}

// Creates reports whether a POST to the path creates an object.
func (s *Path) Creates() bool {
	return s.Collection != "" && s.Collection != "models" && s.Collection != "chat/completions" && s.ID == ""
}

// Lists reports whether a GET of the path lists a collection.
func (s *Path) Lists() bool { return s.Collection != "" && s.Collection != "models" && s.ID == "" }

// IDs returns the ids of stored objects in the path and, if it lists a collection, in the query
// of a request.
func (s *Path) IDs(method string, u *url.URL) (ids []Named) {
	switch {
	case s.Collection == "models":
		if method == http.MethodDelete {
			ids = append(ids, Named{Field: "model", ID: s.ID})
		}
	case s.ID != "":
		ids = append(ids, Named{Field: "id", ID: s.ID})
	case s.Lists() && method == http.MethodGet && u.RawQuery != "":
		q := u.Query()
		for _, name := range []string{"after", "before", "after_id", "before_id"} {
			if v := q.Get(name); v != "" {
				ids = append(ids, Named{Field: name, ID: v})
			}
		}
	}
	return ids
}

// Free reports whether a request to the path of a stored object is free: the object was charged
// at its creation, or never is. responds: the provider also has responses, so that a
// conversation only stores its content.
func (s *Path) Free(method, path string, responds bool) bool {
	if s.Collection == "" || s.Collection == "models" || s.Ambiguous {
		return false
	}
	if method == http.MethodGet || method == http.MethodDelete {
		return true
	}
	switch s.Collection {
	case "assistants", "vector_stores", "files", "uploads", "skills", "webhook_endpoints", "voices", "voice_consents":
		return true
	case "jobs":
		return s.Below // these pause and resume
	case "conversations":
		return responds
	case "evals", "threads":
		return !runs(path)
	case "chat/completions":
		return s.ID != "" && !s.Below
	case "interactions":
		return s.ID != ""
	case "responses":
		return s.ID != "" || strings.HasSuffix(path, "/input_tokens")
	}
	return false
}

// AlwaysNoted reports whether objects created there are recorded as the workspace's even while
// no other workspace uses the credential. Otherwise their owner would be unknown once another
// workspace starts to use it.
func (s *Path) AlwaysNoted() bool {
	switch s.Collection {
	case "", "models", "responses", "conversations", "interactions", "chat/completions":
		return false
	}
	return true
}

// maxIDs limits the ids of objects that one body may name.
const maxIDs = 1000

// Named is an id and the field that holds it.
type Named struct {
	Field, ID string
	Kind      reference.Kind // of a body's; "" otherwise
	// Published: an id without an ownership row may be used by all. It is that of a tuned model,
	// which an administrator may have created for all workspaces, or of an object that belongs
	// to a session.
	Published bool
}

// IDsIn finds the ids of stored objects in a JSON body.
func IDsIn(body []byte) ([]Named, error) {
	found, err := reference.Find(body)
	if err != nil {
		return nil, err
	}
	return named(found)
}

// IDsInRow finds the ids of stored objects in a row of a batch, with the body of a request.
func IDsInRow(line []byte) ([]Named, error) {
	if !reference.MayNameObjects(line) {
		return nil, nil
	}
	ids, err := IDsIn(line)
	if err != nil {
		return nil, err
	}
	var row struct {
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, fault.Invalid("body", "is not a row of a batch")
	}
	more, err := IDsIn(row.Body)
	return append(ids, more...), err
}

// IDsInForm finds the ids of stored objects in the fields of a form. A value that starts like
// JSON but is not JSON names none.
func IDsInForm(f *form.Form) ([]Named, error) {
	var all []reference.Reference
	for name, value := range f.Fields() {
		if found, err := reference.FindInField(name, []byte(value)); err == nil {
			all = append(all, found...)
		}
	}
	return named(all)
}

func named(found []reference.Reference) ([]Named, error) {
	var ids []Named
	for i := range found {
		switch r := &found[i]; {
		case r.TooLong:
			return nil, fault.Invalid(r.Field, "must have at most %d bytes: the owner of a longer one is unknown", reference.MaxToken)
		case r.Object():
			ids = append(ids, Named{Field: r.Field, ID: r.ID, Kind: r.Kind})
		case r.Kind == reference.Model && IsTuned(r.ID):
			ids = append(ids, Named{Field: r.Field, ID: r.ID, Kind: r.Kind, Published: true})
		}
	}
	if len(ids) > maxIDs || len(found) >= reference.Max {
		return nil, fault.Invalid(found[0].Field, "names more than %d stored objects", maxIDs)
	}
	return ids, nil
}

// IsTuned reports whether a model is one that an account has tuned.
func IsTuned(model string) bool {
	return strings.HasPrefix(model, "ft:") || strings.Contains(model, "tunedModels/")
}

// Files returns those of the ids that are of files: the only ones that a translated conversation
// still names.
func Files(ids []Named) []Named {
	return slices.DeleteFunc(ids, func(n Named) bool { return n.Kind != reference.File && n.Kind != reference.Storage })
}
