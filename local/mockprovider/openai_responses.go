package mockprovider

import "net/http"

// Handlers of stored responses: those that were not created with store false.

func noResponse(id string) *apiError {
	return &apiError{status: http.StatusNotFound, message: "Response with id '" + id + "' not found."}
}

func responseOne(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("response", id)
	if n == nil {
		return noResponse(id)
	}
	return listed(x, n.content)
}

func responseGone(x *exchange, id, _ string) *apiError {
	if !x.s.things.remove("response", id) {
		return noResponse(id)
	}
	return listed(x, append(appendString([]byte(`{"id":`), id), `,"object":"response","deleted":true}`...))
}

func responseInput(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("response", id)
	if n == nil {
		return noResponse(id)
	}
	b := []byte(`{"object":"list","data":`)
	if in := n.body.get("input"); in.kind == array {
		b = append(b, in.s...)
	} else {
		b = append(appendString(append(b, `[{"id":"msg_mock","type":"message","role":"user","content":[{"type":"input_text","text":`...), in.s), `}]}]`...)
	}
	return listed(x, append(b, `,"first_id":"msg_mock","last_id":"msg_mock","has_more":false}`...))
}
