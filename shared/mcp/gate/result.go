package gate

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"

	"gateway/shared/mcp"
	"gateway/shared/mcp/protocolversion"
	"gateway/shared/tenant/upstream"
)

// finish answers with a result, in the client's era.
func finish(v *visit, w *way, result json.RawMessage) error {
	modern := v.req.Era == protocolversion.Stateless
	if modern && w.kind != toStateless {
		sendResult(v, dated(result, v.req.Method))
		return nil
	}
	if w.kind != toStateless {
		sendResult(v, result)
		return nil
	}
	members := mcp.Members(result)
	if members == nil {
		return upstream.Fail(http.StatusOK, "the server's result is no object")
	}
	var kind string
	_ = mcp.Text(members["resultType"], &kind) // another form is none
	switch {
	case kind == inputRequired && asks[v.req.Method] && modern:
		return wants(v, members)
	case kind != "" && kind != "complete":
		return upstream.Fail(http.StatusOK, "the server's result is of a type that was not asked for")
	}
	if modern && kind == "complete" && v.req.Method != "resources/read" {
		sendResult(v, result)
		return nil
	}
	age, _ := ageOf(members)
	for _, name := range ours {
		delete(members, name)
	}
	raw := mcp.AppendMembers(nil, members)
	if modern {
		raw = raw[:len(raw)-1]
		if len(members) > 0 {
			raw = append(raw, ',')
		}
		raw = append(raw, `"resultType":"complete"`...)
		if v.req.Method == "resources/read" {
			raw = appendAge(raw, age)
		}
		raw = append(raw, '}')
	}
	sendResult(v, raw)
	return nil
}

// ours are the members of results that servers with sessions do not have.
var ours = [...]string{"resultType", "ttlMs", "cacheScope"}

// dated makes a result of a server with sessions into one for a client without. Members
// that only the gateway may write there are removed first.
func dated(result json.RawMessage, method string) json.RawMessage {
	for _, name := range append(ours[:], `\u`) { // a name may be written so
		if bytes.Contains(result, []byte(name)) {
			members := mcp.Members(result)
			for _, name := range ours {
				delete(members, name)
			}
			result = mcp.AppendMembers(nil, members)
			break
		}
	}
	out := append(make([]byte, 0, len(result)+64), `{"resultType":"complete"`...)
	if method == "resources/read" {
		out = appendAge(out, 0)
	}
	if rest := result[1:]; len(bytes.TrimSpace(rest)) > 1 {
		out = append(out, ',')
	}
	return append(out, result[1:]...)
}

// asks are the methods whose results may ask something of the client.
var asks = map[string]bool{"tools/call": true, "prompts/get": true, "resources/read": true}

// inputRequired is the type of such results.
const inputRequired = "input_required"

// wants passes on that a server asks something of the client, with its state sealed.
func wants(v *visit, members map[string]json.RawMessage) error {
	s := state{Digest: digest(v), Expires: v.call.Now().Add(stateLife).Unix()}
	if raw := members["requestState"]; raw != nil {
		if json.Unmarshal(raw, &s.State) != nil {
			return upstream.Fail(http.StatusOK, "the server's state is no text")
		}
		s.Has = true
		text, err := sealValue(v, binding(v, sealState), &s)
		if err != nil {
			return err
		}
		members["requestState"], _ = json.Marshal(text) // a text
	}
	raw, err := json.Marshal(members)
	if err != nil {
		return err
	}
	sendResult(v, raw)
	return nil
}

// sends has a client without a session send its user to the addresses that a server with
// sessions names, since that server does not know whether the client can do so.
func sends(v *visit, refused *mcp.Error) error {
	var said struct {
		Elicitations []map[string]json.RawMessage `json:"elicitations"`
	}
	if json.Unmarshal(refused.Data, &said) != nil || len(said.Elicitations) == 0 || !asks[v.req.Method] {
		return upstream.Fail(http.StatusOK, "the server wants an address to be opened, and names none")
	}
	if !v.opens {
		refuse(v, &protocolversion.Refusal{Status: http.StatusBadRequest, Error: mcp.Error{
			Code: protocolversion.CodeAbilities, Message: "the user has to open an address first, and the client does not declare that it can ask for that", Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`),
		}})
		return nil
	}
	requests := map[string]any{}
	for i, one := range said.Elicitations {
		if one == nil || one["url"] == nil {
			return upstream.Fail(http.StatusOK, "the server wants an address to be opened, and names none")
		}
		one["mode"] = json.RawMessage(`"url"`)
		requests["open-"+strconv.Itoa(i+1)] = map[string]any{"method": "elicitation/create", "params": one}
	}
	sealed, err := sealValue(v, binding(v, sealState), &state{Digest: digest(v), Expires: v.call.Now().Add(stateLife).Unix()})
	if err != nil {
		return err
	}
	raw, err := json.Marshal(map[string]any{"resultType": inputRequired, "inputRequests": requests, "requestState": sealed})
	if err != nil {
		return err
	}
	sendResult(v, raw)
	return nil
}
