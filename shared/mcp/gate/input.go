package gate

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/mcp/serverrequest"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// inputTimeout is how long a client may take to provide input.
const inputTimeout = 5 * time.Minute

// askableCapabilities returns the client capabilities that servers may use to request input, or
// nil if neither a stream nor a call can be held.
func askableCapabilities(v *requestState, capabilities json.RawMessage) json.RawMessage {
	if v.req == nil || v.call.Buffered || len(capabilities) <= len("{}") || !inputMethods[v.req.Method] || v.req.Kind != protocolversion.Stateless && !v.req.Streams {
		return nil
	}
	return serverrequest.InputCapabilities(capabilities)
}

// errNoInput means that the client did not provide the input.
var errNoInput = errors.New("gate: the client did not provide the input")

// collectInput requests from a client with a session the input that a stateless server requires, and
// puts the responses into o. again is false if a response was sent.
func collectInput(v *requestState, w *bridge, o *outgoing, result json.RawMessage) (again bool, err error) {
	if v.req.Kind == protocolversion.Stateless || w.kind != toStateless || !inputMethods[v.req.Method] {
		return false, finish(v, w, result)
	}
	members := mcp.Fields(result)
	var kind string
	if !mcp.ParseString(members["resultType"], &kind) || kind != inputRequired {
		return false, finish(v, w, result)
	}
	questions, ok := map[string]serverrequest.InputRequest(nil), true
	if raw := members["inputRequests"]; raw != nil {
		questions, ok = serverrequest.Read(raw)
	}
	if !ok || len(questions) == 0 && members["requestState"] == nil {
		return false, upstream.Fail(http.StatusOK, "the server's inputRequests do not match the protocol")
	}
	urls := 0
	for _, q := range questions {
		if q.URL() {
			urls++
		}
		if !serverrequest.Allowed(w.declared, q) && !(q.URL() && v.urlElicitation) {
			unable(v, "The server requests input that this client does not support here.")
			return false, nil
		}
	}
	if urls > 0 && urls == len(questions) {
		return false, sendURLElicitation(v, questions)
	}
	ctx, cancel := context.WithCancel(v.call.Request.Context())
	defer cancel()
	defer cancellable(v, w, cancel)()
	responses := map[string]json.RawMessage{}
	for name, q := range questions {
		if responses[name], err = requestInput(v, ctx, q); errors.Is(err, errNoInput) {
			unable(v, "The client did not provide the requested input.")
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	delete(o.params, "inputResponses")
	delete(o.params, "requestState")
	if len(responses) > 0 {
		o.params["inputResponses"] = mcp.AppendFields(nil, responses)
	}
	if raw := members["requestState"]; raw != nil {
		o.params["requestState"] = raw
	}
	return true, nil
}

// sendURLElicitation responds to a client with a session that its user must open addresses.
func sendURLElicitation(v *requestState, questions map[string]serverrequest.InputRequest) error {
	var urls []json.RawMessage
	for _, q := range questions {
		urls = append(urls, q.Params)
	}
	data, err := json.Marshal(map[string]any{"elicitations": urls})
	if err != nil {
		return err
	}
	sendError(v, &mcp.Error{Code: protocolversion.CodeSignIn, Message: "the user must open an address first", Data: data})
	return nil
}

// requestInputGuarded is requestInput with guardrails in both directions.
func requestInputGuarded(v *requestState, ctx context.Context, q serverrequest.InputRequest) (json.RawMessage, error) {
	if q.Params != nil {
		params, denied := v.call.Pipeline.Judge(q.Params)
		if denied {
			return nil, errNoInput
		}
		q.Params = params
	}
	result, err := requestInput(v, ctx, q)
	if err != nil {
		return nil, err
	}
	changed, denied, err := v.call.Pipeline.Guard(v.record.Name, result)
	switch {
	case denied:
		return nil, errNoInput
	case err != nil:
		return nil, err
	case changed != nil:
		return changed, nil
	}
	return result, nil
}

// requestInput sends a question on the stream of the request and waits for the client's response,
// which arrives as a separate request.
func requestInput(v *requestState, ctx context.Context, q serverrequest.InputRequest) (json.RawMessage, error) {
	id := "gateway-" + rand.Text()
	answer := make(chan json.RawMessage, 1)
	waitKey := runningKey(v, wire.AppendJSONString(nil, id))
	v.host.questions.Store(waitKey, answer)
	defer v.host.questions.Delete(waitKey)
	v.streaming = true
	v.call.Pipeline.Event(wire.AppendSSE(nil, "message", serverrequest.Request(id, q)), false, nil)
	ends := time.NewTimer(inputTimeout)
	defer ends.Stop()
	alive := time.NewTicker(keepAliveInterval)
	defer alive.Stop()
	for {
		select {
		case result := <-answer:
			if wire.KindOf(result) != wire.KindObject {
				return nil, errNoInput
			}
			return result, nil
		case <-alive.C:
			v.call.Pipeline.Event([]byte(": here\n\n"), false, nil)
		case <-ends.C:
			return nil, errNoInput
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-v.call.Request.Context().Done(): // the client is gone
			return nil, context.Canceled
		}
	}
}

// deliverResponse passes a response of the client to the waiting request, or nil for an error.
// It copies the response, because the body's memory is reused.
func deliverResponse(v *requestState) {
	if v.req.Method != "" {
		return
	}
	if waits, ok := v.host.questions.LoadAndDelete(runningKey(v, v.req.ID)); ok {
		waits.(chan json.RawMessage) <- bytes.Clone(v.req.Result) // the channel has capacity for it
	}
}
