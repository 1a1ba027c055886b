package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"gateway/local/cli/settings"
)

var setupVerb = Verb{
	Name: "setup", Args: "claude-code|codex|opencode", Summary: "Point a coding agent of this user at the gateway, or undo that",
	Path: []string{"claude-code", "codex", "opencode", "--undo", "--yes", "--model", "--workspace"}, Run: setup,
}

// setupResult is the output with --json.
type setupResult struct {
	Agent string `json:"agent"`
	File  string `json:"file"`
	Diff  string `json:"diff"`
	KeyID string `json:"key_id,omitempty"`
	Key   string `json:"key_name,omitempty"`
	Model string `json:"model,omitempty"`
	Cost  string `json:"cost_usd,omitempty"` // of the request that verified the setup
	Saved string `json:"saved,omitempty"`    // where undo stored later changes of the file
}

func setup(ctx context.Context, e Env) int {
	fs := Flags("setup")
	undo := fs.Bool("undo", false, "restore the settings file as it was before setup and delete the key")
	yes := fs.Bool("yes", false, "write without a question")
	model := fs.String("model", "", "model of the agent, such as @slug/model; default: the best that the gateway lists")
	workspace := fs.String("workspace", "", "id or slug of the workspace, for keys of the organization; default: the default workspace")
	args, asJSON, err := e.Parse(fs, 1, 1)
	if err != nil {
		return e.Fail(err)
	}
	a, ok := findAgent(args[0])
	switch {
	case !ok:
		return e.Fail(Usagef("setup: unknown agent %s; use %s", shown(args[0]), strings.Join(agentNames(), ", ")))
	case e.Home == "":
		return e.Fail(Usagef("setup: the home folder of the user is unknown: set HOME (USERPROFILE on Windows)"))
	case !*yes && !e.Terminal:
		return e.Fail(Usagef("setup: there is no terminal to ask at: use --yes to write"))
	case *undo:
		return e.Fail(e.undo(ctx, a, *yes, asJSON))
	}
	return e.Fail(e.setup(ctx, a, &key{agent: a, model: *model, workspace: *workspace}, *yes, asJSON))
}

// key is an API key that setup makes.
type key struct {
	agent            *agent
	model, workspace string // as requested

	client Client // of who makes it
	own    Client // that uses it
	id     string
	name   string
}

func (e Env) setup(ctx context.Context, a *agent, k *key, yes, asJSON bool) (err error) {
	file := a.file(e)
	current, mode, err := readSettings(file)
	if err != nil {
		return err
	}
	former, err := e.readDone(a.name)
	if err != nil {
		return err
	}
	// What cannot be edited is found before a key exists.
	trial := setting{base: "http://localhost", key: "k", keyFile: "f", model: "m", small: "m"}
	if _, err := a.edit(current, &trial); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if k.client, err = e.Client(ctx); err != nil {
		return err
	}
	if err := k.create(ctx, e); err != nil {
		return err
	}
	stored := false
	defer func() {
		if !stored {
			err = errors.Join(err, k.delete(context.WithoutCancel(ctx)))
		}
	}()
	s, err := k.settle(ctx)
	if err != nil {
		return err
	}
	dir, err := e.dir()
	if err != nil {
		return err
	}
	s.keyFile = filepath.Join(dir, "keys", a.name)
	edited, err := a.edit(current, s)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	result := setupResult{Agent: a.name, File: file, KeyID: k.id, Key: k.name, Model: s.model, Diff: mask(settings.Diff(file, string(current), string(edited)), s.key, former)}
	if !asJSON {
		fmt.Fprint(e.Stdout, result.Diff)
	}
	if ok, err := e.confirm(yes, "Write "+file+"?"); !ok {
		return err
	}
	if result.Cost, err = k.verify(ctx, s.model); err != nil {
		return fmt.Errorf("nothing was written, because a small request with the new key failed: %w", err)
	}
	d := &done{Agent: a.name, URL: k.client.Base, KeyID: k.id, File: file, Existed: current != nil, Mode: uint32(mode), Before: current, Written: sum(edited)}
	if former != nil && former.File == file { // the contents before the first setup
		d.Existed, d.Mode, d.Before, d.Folders = former.Existed, former.Mode, former.Before, former.Folders
	}
	if err := e.writeDone(d); err != nil {
		return err
	}
	if s.usesKeyFile {
		if _, err := writeFile(s.keyFile, []byte(s.key+"\n"), 0o600); err != nil {
			return err
		}
	}
	made, err := writeFile(file, edited, 0o600)
	if err != nil {
		return errors.Join(err, e.rollBack(d, former))
	}
	stored = true
	if d.Folders = append(d.Folders, made...); len(made) > 0 {
		if err := e.writeDone(d); err != nil {
			return err
		}
	}
	if former != nil && former.URL == k.client.Base {
		if err := (&key{client: k.client, id: former.KeyID}).delete(ctx); err != nil {
			fmt.Fprintf(e.Stderr, "gateway: the key of the setup before (id %s) was not deleted: %v\n", former.KeyID, err)
		}
	}
	if asJSON {
		return json.NewEncoder(e.Stdout).Encode(result)
	}
	fmt.Fprintf(e.Stdout, "%s now uses %s with the key %s and the model %s.\nVerified by one request%s. To go back: gateway setup %s --undo\n",
		a.name, k.client.Base, k.name, s.model, costText(result.Cost), a.name)
	return nil
}

func costText(usd string) string {
	if usd == "" {
		return ""
	}
	return " that cost " + usd + " USD"
}

// rollBack removes the record of a setup that was not completed, or restores the one before.
func (e Env) rollBack(d, former *done) error {
	if former != nil {
		return e.writeDone(former)
	}
	dir, err := e.setupDir()
	if err != nil {
		return err
	}
	return os.Remove(filepath.Join(dir, d.Agent+".json"))
}

// mask hides the new key in a diff, and the key of an earlier setup.
func mask(diff, secret string, former *done) string {
	out := strings.ReplaceAll(diff, secret, secret[:min(3, len(secret))]+"********")
	if former == nil {
		return out
	}
	// The earlier key is not known any more: hide its line.
	list := strings.Split(out, "\n")
	for i, line := range list {
		if strings.HasPrefix(line, "-") && (strings.Contains(line, "ANTHROPIC_AUTH_TOKEN") || strings.Contains(line, "x-gateway-api-key")) {
			list[i] = "-  (the key of the setup before)"
		}
	}
	return strings.Join(list, "\n")
}

// confirm asks for confirmation on the terminal; false without an error means no.
func (e Env) confirm(yes bool, question string) (bool, error) {
	if yes {
		return true, nil
	}
	fmt.Fprintf(e.Stderr, "%s [y/N] ", question)
	line, _ := bufio.NewReader(e.Stdin).ReadString('\n')
	switch strings.ToLower(strings.TrimSpace(line)) {
	case "y", "yes":
		return true, nil
	}
	fmt.Fprintln(e.Stderr, "Nothing was written.")
	return false, errRejected
}

// scopes of the keys of agents.
var agentScopes = []string{"completions.write", "models.list"}

// create makes the key: of the workspace by an API key, of the user after login.
func (k *key) create(ctx context.Context, e Env) error {
	host := e.Host
	if host == "" {
		host = "localhost"
	}
	k.name = k.agent.name + "@" + host
	kind := "service"
	if e.Getenv(EnvKey) == "" {
		kind = "user"
	}
	metadata := map[string]string{"agent": k.agent.name}
	for _, name := range []string{"USER", "USERNAME"} {
		if user := e.Getenv(name); user != "" && len(user) <= 64 {
			metadata["_user"] = user
			break
		}
	}
	body := map[string]any{"name": k.name, "scopes": agentScopes, "defaults": map[string]any{"metadata": metadata}}
	if k.workspace != "" {
		body["workspace_id"] = k.workspace
	}
	var made struct{ ID, Key string }
	err := k.client.Call(ctx, http.MethodPost, "/api-keys/workspace/"+kind, body, &made)
	var refused *APIError
	if errors.As(err, &refused) && refused.Status == http.StatusBadRequest && k.workspace == "" && strings.Contains(refused.Message, "workspace_id") {
		if k.workspace, err = k.client.defaultWorkspace(ctx); err != nil {
			return err
		}
		body["workspace_id"] = k.workspace
		err = k.client.Call(ctx, http.MethodPost, "/api-keys/workspace/"+kind, body, &made)
	}
	if errors.As(err, &refused) && refused.Status == http.StatusForbidden {
		return fmt.Errorf("%w; setup needs the scope workspace_%s_api_keys.create, which an admin key has", err, kind)
	}
	if err != nil {
		return err
	}
	k.id = made.ID
	k.own = k.client
	k.own.Key = made.Key
	if made.Key == "" || made.ID == "" {
		return errors.Join(errors.New("the gateway created a key but did not return it"), k.delete(ctx))
	}
	return nil
}

func (k *key) delete(ctx context.Context) error {
	if k.id == "" {
		return nil
	}
	return k.client.Call(ctx, http.MethodDelete, "/api-keys/"+url.PathEscape(k.id), nil, nil)
}

// defaultWorkspace returns the slug of the default workspace of an organization.
func (c Client) defaultWorkspace(ctx context.Context) (string, error) {
	var list struct {
		Data []struct {
			Slug    string `json:"slug"`
			Default int    `json:"is_default"`
		} `json:"data"`
	}
	if err := c.Call(ctx, http.MethodGet, "/workspaces", nil, &list); err != nil {
		return "", err
	}
	for _, w := range list.Data {
		if w.Default == 1 || len(list.Data) == 1 {
			return w.Slug, nil
		}
	}
	return "", Usagef("name a workspace with --workspace")
}

// settle chooses the models.
func (k *key) settle(ctx context.Context) (*setting, error) {
	s := &setting{base: k.client.Base, key: k.own.Key, model: k.model, small: k.model}
	if s.model != "" {
		return s, nil
	}
	ids, err := k.own.models(ctx)
	if err != nil {
		return nil, err
	}
	if s.model = pick(ids, k.agent.prefer); s.model == "" {
		return nil, Usagef("setup: the gateway lists no model: save a provider first, or name a model with --model")
	}
	s.small = s.model
	slug := s.model[:strings.LastIndexByte(s.model, '/')+1]
	same := slices.DeleteFunc(ids, func(id string) bool { return !strings.HasPrefix(id, slug) })
	if strings.HasPrefix(s.model[len(slug):], "claude") {
		if small := pick(same, []string{"claude-haiku-4-5", "claude-haiku"}); strings.Contains(small, "haiku") {
			s.small = small
		}
	}
	return s, nil
}

// models returns the ids of the models that a key may use.
func (c Client) models(ctx context.Context) ([]string, error) {
	var list struct {
		Data []struct{ ID string } `json:"data"`
	}
	if err := c.Call(ctx, http.MethodGet, "/models", nil, &list); err != nil {
		return nil, err
	}
	ids := make([]string, len(list.Data))
	for i, m := range list.Data {
		ids[i] = m.ID
	}
	return ids, nil
}

// verify sends one small request with the new key and returns its cost in US dollars; "" if
// the caller may not read logs.
func (k *key) verify(ctx context.Context, model string) (cost string, err error) {
	resp, err := k.own.Do(ctx, http.MethodPost, k.agent.tryPath, k.agent.tryBody(model), k.agent.header...)
	if err != nil {
		return "", err
	}
	if err := k.own.read(http.MethodPost, k.agent.tryPath, resp, nil); err != nil {
		return "", err
	}
	return k.client.costOf(ctx, resp.Header.Get("X-Gateway-Trace-Id")), nil
}

// costOf waits until the request of a trace is in the log and returns its cost in US
// dollars; "" if the caller may not read logs.
func (c Client) costOf(ctx context.Context, trace string) string {
	for end := time.Now().Add(5 * time.Second); trace != "" && time.Now().Before(end); {
		var list struct {
			Data []struct {
				Cost json.Number `json:"cost_usd"`
			} `json:"data"`
		}
		if err := c.Call(ctx, http.MethodGet, "/logs?page_size=1&trace_id="+url.QueryEscape(trace), nil, &list); err != nil {
			return ""
		}
		if len(list.Data) > 0 {
			return list.Data[0].Cost.String()
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			return ""
		}
	}
	return ""
}

// undo restores the bytes of the settings file from before setup. Later changes to the file are
// saved beside the record.
func (e Env) undo(ctx context.Context, a *agent, yes, asJSON bool) error {
	d, err := e.readDone(a.name)
	if err != nil {
		return err
	}
	if d == nil {
		return fmt.Errorf("%s was not set up here: there is nothing to undo", a.name)
	}
	current, _, err := readSettings(d.File)
	if err != nil {
		return err
	}
	result := setupResult{Agent: a.name, File: d.File, KeyID: d.KeyID, Diff: mask(settings.Diff(d.File, string(current), string(d.Before)), "\x00", d)}
	if !asJSON {
		fmt.Fprint(e.Stdout, result.Diff)
	}
	if ok, err := e.confirm(yes, "Restore "+d.File+"?"); !ok {
		return err
	}
	dir, err := e.setupDir()
	if err != nil {
		return err
	}
	if current != nil && sum(current) != d.Written {
		result.Saved = filepath.Join(dir, a.name+".replaced")
		if _, err := writeFile(result.Saved, current, 0o600); err != nil {
			return err
		}
	}
	if d.Existed {
		_, err = writeFile(d.File, d.Before, fs.FileMode(d.Mode))
	} else if err = os.Remove(d.File); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if err != nil {
		return err
	}
	for i := len(d.Folders) - 1; i >= 0; i-- {
		_ = os.Remove(d.Folders[i]) // fails if something else is in it, and that is right
	}
	if own, err := e.dir(); err == nil {
		_ = os.Remove(filepath.Join(own, "keys", a.name))
	}
	if err := os.Remove(filepath.Join(dir, a.name+".json")); err != nil {
		return err
	}
	client, err := e.Client(ctx)
	if err == nil && client.Base == d.URL {
		err = (&key{client: client, id: d.KeyID}).delete(ctx)
	} else if err == nil {
		err = fmt.Errorf("it is of %s", d.URL)
	}
	if err != nil {
		fmt.Fprintf(e.Stderr, "gateway: the settings are restored, but the key (id %s) was not deleted: %v\n", d.KeyID, err)
	}
	if asJSON {
		return json.NewEncoder(e.Stdout).Encode(result)
	}
	fmt.Fprintf(e.Stdout, "%s is as it was before setup.\n", d.File)
	if result.Saved != "" {
		fmt.Fprintf(e.Stdout, "It had changed since; that version is in %s.\n", result.Saved)
	}
	return nil
}
