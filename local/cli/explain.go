package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

var explainVerb = Verb{Name: "explain", Args: "<log id|trace id>", Summary: "Explain why a request went where it went", Words: []string{"--workspace"}, Run: explain}

// maxExplained limits how many logs of one trace are explained.
const maxExplained = 50

// explanation is the response of GET /logs/{id}/explain.
type explanation struct {
	LogID  string `json:"log_id"`
	Status int    `json:"status"`
	Steps  []struct {
		Step   string   `json:"step"`
		Text   string   `json:"text"`
		Start  *float64 `json:"start_ms"`
		Took   *float64 `json:"took_ms"`
		Waited *float64 `json:"waited_ms"`
	} `json:"steps"`
	USD    json.Number `json:"cost_usd"`
	Timing struct {
		Total     float64  `json:"total_ms"`
		FirstByte float64  `json:"first_byte_ms"`
		Gateway   float64  `json:"gateway_ms"`
		FirstCall *float64 `json:"first_call_ms"`
	} `json:"timing"`
}

func explain(ctx context.Context, e Env) int {
	fs := Flags("explain")
	workspace := fs.String("workspace", "", "id or slug of a workspace, for keys of the organization")
	args, asJSON, err := e.Parse(fs, 1, 1)
	if err != nil {
		return e.Fail(err)
	}
	if args[0] == "" || len(args[0]) > 255 {
		return e.Fail(Usagef("explain: the id of a log or of a trace has 1 to 255 characters"))
	}
	client, err := e.Client(ctx)
	if err != nil {
		return e.Fail(err)
	}
	query := url.Values{}
	if *workspace != "" {
		query.Set("workspace_slug", *workspace)
	}
	found, err := client.explanations(ctx, args[0], query)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		return e.Fail(json.NewEncoder(e.Stdout).Encode(map[string]any{"object": "list", "data": found}))
	}
	for i, raw := range found {
		var x explanation
		if err := json.Unmarshal(raw, &x); err != nil {
			return e.Fail(Unreachable{client.Base, err})
		}
		if i > 0 {
			fmt.Fprintln(e.Stdout)
		}
		e.printExplanation(&x)
	}
	return ExitDone
}

// explanations returns those of the log with an id, or else of all logs of the trace.
func (c Client) explanations(ctx context.Context, id string, query url.Values) (found []json.RawMessage, err error) {
	one := func(id string) error {
		var x json.RawMessage
		err := c.Call(ctx, http.MethodGet, "/logs/"+url.PathEscape(id)+"/explain?"+query.Encode(), nil, &x)
		if err == nil {
			found = append(found, x)
		}
		return err
	}
	missing := one(id)
	var refused *APIError
	if missing == nil || !errors.As(missing, &refused) || refused.Status != http.StatusNotFound && refused.Status != http.StatusBadRequest {
		return found, missing
	}
	q := url.Values{"trace_id": {id}, "page_size": {fmt.Sprint(maxExplained)}}
	for name, v := range query {
		q[name] = v
	}
	var list struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	if err := c.Call(ctx, http.MethodGet, "/logs?"+q.Encode(), nil, &list); err != nil {
		return nil, err
	}
	if len(list.Data) == 0 {
		return nil, fmt.Errorf("no log and no trace has the id %.255q; logs appear about a second after their request ended", id)
	}
	for i := len(list.Data) - 1; i >= 0; i-- { // oldest first
		if err := one(list.Data[i].ID); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func (e Env) printExplanation(x *explanation) {
	fmt.Fprintf(e.Stdout, "log %s: status %d, %s USD, %.1f ms (%.1f ms in the gateway, first byte after %.1f ms)\n", plain(x.LogID), x.Status, x.USD, x.Timing.Total, x.Timing.Gateway, x.Timing.FirstByte)
	for i, s := range x.Steps {
		fmt.Fprintf(e.Stdout, "%3d. %-11s %s", i+1, plain(s.Step), plain(s.Text))
		if s.Start != nil {
			fmt.Fprintf(e.Stdout, " (at %.1f ms)", *s.Start)
		}
		if s.Waited != nil && *s.Waited > 0 {
			fmt.Fprintf(e.Stdout, " (waited %.1f ms)", *s.Waited)
		}
		fmt.Fprintln(e.Stdout)
	}
}
