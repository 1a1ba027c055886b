package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"gateway/local/declare"
	"gateway/local/document"
	"gateway/local/migrate"
	"gateway/shared/fault"
	"gateway/shared/route"
)

var logsVerb = Verb{Name: "logs", Args: "tail", Summary: "Follow the log: one line per request as it ends", Path: []string{"tail", "--filter", "--limit", "--workspace"}, Run: logs}

// filters collects flags of the form name=value.
type filters struct{ url.Values }

func (f filters) String() string { return f.Values.Encode() }

func (f filters) Set(s string) error {
	name, value, ok := strings.Cut(s, "=")
	if !ok || name == "" {
		return errors.New("must be name=value, such as ai_model=gpt-4o")
	}
	f.Values.Set(name, value)
	return nil
}

func logs(ctx context.Context, e Env) int {
	fs := Flags("logs")
	query := filters{url.Values{}}
	fs.Var(query, "filter", "`name=value`: show matching rows only; the names of GET /v1/logs, such as ai_model, status_code, api_key_ids; may be repeated")
	limit := fs.Int("limit", 0, "stop after this number of rows; 0 means no limit")
	workspace := fs.String("workspace", "", "id or slug of a workspace, for keys of the organization")
	args, asJSON, err := e.Parse(fs, 1, 1)
	if err != nil {
		return e.Fail(err)
	}
	switch {
	case args[0] != "tail":
		return e.Fail(Usagef("logs: unknown command %s; use tail", shown(args[0])))
	case *limit < 0:
		return e.Fail(Usagef("logs: --limit must be 0 or above"))
	}
	if *workspace != "" {
		query.Values.Set("workspace_slug", *workspace)
	}
	client, err := e.Client(ctx)
	if err != nil {
		return e.Fail(err)
	}
	client.HTTP.Timeout = 0
	t := &tail{env: e, client: client, query: query.Values, json: asJSON, left: *limit, pause: time.Second}
	err = t.follow(ctx)
	if ctx.Err() != nil { // interrupted: that is how a tail ends
		return ExitDone
	}
	return e.Fail(err)
}

// maxAway is for how long a tail tries to come back to a gateway that was reachable.
const maxAway = time.Minute

// tail follows logs over several connections.
type tail struct {
	env    Env
	client Client
	query  url.Values
	json   bool
	left   int // rows until the end; 0: no bound

	mark  string        // of the last row
	pause time.Duration // before coming back
	seen  time.Time     // when the gateway was reachable last
}

var errEnough = errors.New("enough rows")

// follow returns when the bound of rows is reached, or with the reason why it cannot go on.
func (t *tail) follow(ctx context.Context) error {
	for {
		err := t.connection(ctx)
		var away Unreachable
		switch {
		case errors.Is(err, errEnough):
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, &away) && (t.seen.IsZero() || time.Since(t.seen) > maxAway):
			return err
		case err != nil && !errors.As(err, &away):
			return err
		}
		select {
		case <-time.After(t.pause):
		case <-ctx.Done():
		}
	}
}

// connection reads one response. It returns nil when the response ends.
func (t *tail) connection(ctx context.Context) error {
	path := "/logs/tail"
	if len(t.query) > 0 {
		path += "?" + t.query.Encode()
	}
	var header []string
	if t.mark != "" {
		header = []string{"Last-Event-ID", t.mark}
	}
	resp, err := t.client.Do(ctx, http.MethodGet, path, nil, header...)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		if err := t.client.read(http.MethodGet, path, resp, nil); err != nil {
			return err
		}
		return Unreachable{t.client.Base, errors.New("the response is not a stream of events")}
	}
	t.seen = time.Now()
	lines := bufio.NewReaderSize(resp.Body, 64<<10)
	name, data, mark := "", "", ""
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if err == io.EOF {
				return nil
			}
			return Unreachable{t.client.Base, cause(err)}
		}
		t.seen = time.Now()
		key, value, _ := strings.Cut(strings.TrimRight(line, "\r\n"), ":")
		value = strings.TrimPrefix(value, " ")
		switch key {
		case "event":
			name = value
		case "id":
			mark = value
		case "data":
			data = value
		case "retry":
			if ms, err := strconv.Atoi(value); err == nil && ms > 0 && ms < 60_000 {
				t.pause = time.Duration(ms) * time.Millisecond
			}
		case "":
			if line[0] == ':' || name == "" { // a comment, or nothing
				continue
			}
			if err := t.event(name, data); err != nil {
				return err
			}
			if mark != "" {
				t.mark = mark
			}
			name, data, mark = "", "", ""
		}
	}
}

// event prints one event.
func (t *tail) event(name, data string) error {
	switch name {
	case "log":
		if t.json {
			fmt.Fprintln(t.env.Stdout, data)
		} else if err := t.row(data); err != nil {
			return err
		}
		if t.left > 0 {
			if t.left--; t.left == 0 {
				return errEnough
			}
		}
	case "refused":
		var body struct {
			Data struct {
				Message string `json:"message"`
			} `json:"data"`
		}
		_ = json.Unmarshal([]byte(data), &body)
		return fmt.Errorf("the gateway ended the tail: %s", body.Data.Message)
	default: // dropped, missed
		fmt.Fprintf(t.env.Stderr, "gateway: %s %s\n", name, data)
	}
	return nil
}

// logRow is what a line shows of a row.
type logRow struct {
	ID       string      `json:"id"`
	Created  time.Time   `json:"created_at"`
	Status   int         `json:"response_status_code"`
	Code     string      `json:"error_code"`
	Endpoint string      `json:"endpoint"`
	Provider string      `json:"ai_org"`
	Model    string      `json:"ai_model"`
	Units    float64     `json:"total_units"`
	Cost     json.Number `json:"cost_usd"`
	Time     float64     `json:"response_time"`
	Cache    string      `json:"cache_status"`
}

func (t *tail) row(data string) error {
	var r logRow
	if err := json.Unmarshal([]byte(data), &r); err != nil {
		return Unreachable{t.client.Base, fmt.Errorf("a row of the tail is not valid: %w", err)}
	}
	line := fmt.Sprintf("%s %d %-16s %s %.0f units %s USD %.0f ms", r.Created.Local().Format("15:04:05.000"), r.Status, plain(r.Endpoint), plain(strings.TrimPrefix(r.Provider+"/"+r.Model, "/")), r.Units, r.Cost, r.Time)
	if strings.HasSuffix(r.Cache, "HIT") {
		line += " cached"
	}
	if r.Code != "" {
		line += " " + plain(r.Code)
	}
	fmt.Fprintln(t.env.Stdout, line+" "+r.ID)
	return nil
}

// plain removes what could move the cursor of a terminal: names come from clients.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r >= 0x200b && r <= 0x202e || r >= 0x2060 && r <= 0x206f {
			return '?'
		}
		return r
	}, s)
}

var validateVerb = Verb{Name: "validate", Args: "<file|->", Summary: "Check a config object, an import file or a declared state, offline", Run: validate}

// maxValidated limits the file, in bytes.
const maxValidated = 16 << 20

// problem is one thing that is wrong in a file.
type problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

func validate(_ context.Context, e Env) int {
	args, asJSON, err := e.Parse(Flags("validate"), 1, 1)
	if err != nil {
		return e.Fail(err)
	}
	raw, err := e.readInput(args[0], maxValidated)
	if err != nil {
		return e.Fail(err)
	}
	kind, found, err := check(args[0], raw)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		err := json.NewEncoder(e.Stdout).Encode(map[string]any{"file": args[0], "kind": kind, "valid": len(found) == 0, "errors": found})
		if err == nil && len(found) > 0 {
			err = errRejected
		}
		return e.Fail(err)
	}
	for _, p := range found {
		field := p.Field
		if field != "" {
			field += ": "
		}
		fmt.Fprintf(e.Stdout, "%s: %s%s\n", args[0], plain(field), plain(p.Message))
	}
	if len(found) > 0 {
		return e.Fail(errRejected)
	}
	fmt.Fprintf(e.Stdout, "%s: valid %s\n", args[0], kind)
	return ExitDone
}

// Kinds of files.
const (
	kindConfig  = "config"
	kindState   = "declared state"
	kindLiteLLM = "litellm import"
)

// kindOf determines the kind of a file by its fields.
func kindOf(n *document.Node) string {
	switch {
	case n.Get("model_list") != nil || n.Get("litellm_settings") != nil || n.Get("router_settings") != nil || n.Get("general_settings") != nil:
		return kindLiteLLM
	case n.Get("version") != nil && (n.Get("organization") != nil || n.Get("workspaces") != nil):
		return kindState
	}
	return kindConfig
}

// check returns what a file is and all that is wrong in it.
func check(name string, raw []byte) (kind string, found []problem, err error) {
	raw = bytes.TrimPrefix(raw, []byte("\ufeff"))
	root, err := document.Parse(filepath.Base(name), raw)
	if err != nil {
		return kindConfig, []problem{{"", err.Error()}}, nil //nolint:nilerr // it is the result
	}
	if root.Kind() != document.Map {
		return kindConfig, []problem{{"", "must be an object, not " + root.Kind().String()}}, nil
	}
	switch kind = kindOf(root); kind {
	case kindLiteLLM:
		if name == "-" {
			return kind, nil, Usagef("validate: an import file can include other files: name it instead of -")
		}
		_, err = migrate.LiteLLM(name, func(string) string { return "validate" }) // a value for each secret
	case kindState:
		_, err = declare.Parse(root)
	default:
		return kind, checkConfig(root, raw), nil
	}
	if err != nil {
		return kind, []problem{{"", err.Error()}}, nil
	}
	return kind, []problem{}, nil
}

// checkConfig checks a config object, or the body of POST /v1/configs, by the parser of the
// gateway.
func checkConfig(root *document.Node, raw []byte) []problem {
	if !json.Valid(raw) { // YAML
		var err error
		if raw, err = json.Marshal(root.Value()); err != nil {
			return []problem{{"", err.Error()}}
		}
	}
	var body struct {
		Name   json.RawMessage `json:"name"`
		Config json.RawMessage `json:"config"`
	}
	if err := json.Unmarshal(raw, &body); err != nil {
		return []problem{{"", err.Error()}}
	}
	if body.Config != nil {
		if body.Name == nil {
			return []problem{{"name", "is required in addition to config"}}
		}
		raw = body.Config
	}
	_, details := route.Parse(raw, route.Strict)
	return problems(details)
}

func problems(details []fault.Detail) []problem {
	out := make([]problem, len(details))
	for i, d := range details {
		out[i] = problem{d.Field, d.Message}
	}
	return out
}
