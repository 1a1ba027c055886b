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

// questionTime is how long a client may take to answer what a server asks.
const questionTime = 5 * time.Minute

// askableCapabilities returns the capabilities of a client under which questions of the server are
// asked: none where no stream or call can be held.
func askableCapabilities(v *visit, capabilities json.RawMessage) json.RawMessage {
	if v.req == nil || v.call.Buffered || len(capabilities) <= len("{}") || !asks[v.req.Method] || v.req.Era != protocolversion.Stateless && !v.req.Streams {
		return nil
	}
	return serverrequest.Carried(capabilities)
}

// errUnanswered means that the client did not answer a question of the server.
var errUnanswered = errors.New("gate: the client did not answer")

// interview asks a client with a session what a server without wants to know before it
// serves the request, and puts the answers into o. again is false if the request has been
// answered.
func interview(v *visit, w *way, o *outgoing, result json.RawMessage) (again bool, err error) {
	if v.req.Era == protocolversion.Stateless || w.kind != toStateless || !asks[v.req.Method] {
		return false, finish(v, w, result)
	}
	members := mcp.Members(result)
	var kind string
	if !mcp.Text(members["resultType"], &kind) || kind != inputRequired {
		return false, finish(v, w, result)
	}
	questions, ok := map[string]serverrequest.Question(nil), true
	if raw := members["inputRequests"]; raw != nil {
		questions, ok = serverrequest.Read(raw)
	}
	if !ok || len(questions) == 0 && members["requestState"] == nil {
		return false, upstream.Fail(http.StatusOK, "the server's result asks for something in another form than the protocol's")
	}
	urls := 0
	for _, q := range questions {
		if q.URL() {
			urls++
		}
		if !serverrequest.Allowed(w.carried, q) && !(q.URL() && v.opens) {
			unable(v, "The server asks for something that this client cannot be asked for here.")
			return false, nil
		}
	}
	if urls > 0 && urls == len(questions) {
		return false, opensAddresses(v, questions)
	}
	ctx, cancel := context.WithCancel(v.call.Request.Context())
	defer cancel()
	defer cancellable(v, w, cancel)()
	responses := map[string]json.RawMessage{}
	for name, q := range questions {
		if responses[name], err = question(v, ctx, q); errors.Is(err, errUnanswered) {
			unable(v, "The client did not answer what the server asks for.")
			return false, nil
		}
		if err != nil {
			return false, err
		}
	}
	delete(o.params, "inputResponses")
	delete(o.params, "requestState")
	if len(responses) > 0 {
		o.params["inputResponses"] = mcp.AppendMembers(nil, responses)
	}
	if raw := members["requestState"]; raw != nil {
		o.params["requestState"] = raw
	}
	return true, nil
}

// opensAddresses tells a client with a session that its user has to open addresses.
func opensAddresses(v *visit, questions map[string]serverrequest.Question) error {
	var urls []json.RawMessage
	for _, q := range questions {
		urls = append(urls, q.Params)
	}
	data, err := json.Marshal(map[string]any{"elicitations": urls})
	if err != nil {
		return err
	}
	wrong(v, &mcp.Error{Code: protocolversion.CodeSignIn, Message: "the user has to open an address first", Data: data})
	return nil
}

// judgedQuestion is question for what the guardrails let through in both directions.
func judgedQuestion(v *visit, ctx context.Context, q serverrequest.Question) (json.RawMessage, error) {
	if q.Params != nil {
		params, denied := v.call.Judge(q.Params)
		if denied {
			return nil, errUnanswered
		}
		q.Params = params
	}
	result, err := question(v, ctx, q)
	if err != nil {
		return nil, err
	}
	changed, denied, err := v.call.Guard(v.note.Name, result)
	switch {
	case denied:
		return nil, errUnanswered
	case err != nil:
		return nil, err
	case changed != nil:
		return changed, nil
	}
	return result, nil
}

// question sends a question on the stream of the request and waits for the client's
// answer, which comes as a request of its own.
func question(v *visit, ctx context.Context, q serverrequest.Question) (json.RawMessage, error) {
	id := "gateway-" + rand.Text()
	answer := make(chan json.RawMessage, 1)
	answered := runningKey(v, wire.AppendJSONString(nil, id))
	v.host.questions.Store(answered, answer)
	defer v.host.questions.Delete(answered)
	v.began = true
	v.call.Event(wire.AppendSSE(nil, "message", serverrequest.Request(id, q)), false, nil)
	ends := time.NewTimer(questionTime)
	defer ends.Stop()
	alive := time.NewTicker(quiet)
	defer alive.Stop()
	for {
		select {
		case result := <-answer:
			if wire.KindOf(result) != wire.KindObject {
				return nil, errUnanswered
			}
			return result, nil
		case <-alive.C:
			v.call.Event([]byte(": here\n\n"), false, nil)
		case <-ends.C:
			return nil, errUnanswered
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-v.call.Request.Context().Done(): // nobody could be answered
			return nil, context.Canceled
		}
	}
}

// answeredQuestion passes an answer of the client to the request that waits for it: nil for
// an error. It is a copy, because the memory of the body is used again for other requests.
func answeredQuestion(v *visit) {
	if v.req.Method != "" {
		return
	}
	if waits, ok := v.host.questions.LoadAndDelete(runningKey(v, v.req.ID)); ok {
		waits.(chan json.RawMessage) <- bytes.Clone(v.req.Result) // has room for the one answer
	}
}
