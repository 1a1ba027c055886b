package mockprovider

import "net/http"

// What is kept of responses that were not made with store false.

func noResponse(id string) *apiError {
	return &apiError{status: http.StatusNotFound, message: "Response with id '" + id + "' not found."}
}

func (x *exchange) responseOne(id, _ string) *apiError {
	n := x.s.things.get("response", id)
	if n == nil {
		return noResponse(id)
	}
	return x.listed(n.content)
}

func (x *exchange) responseGone(id, _ string) *apiError {
	if !x.s.things.remove("response", id) {
		return noResponse(id)
	}
	return x.listed(append(appendString([]byte(`{"id":`), id), `,"object":"response","deleted":true}`...))
}

func (x *exchange) responseInput(id, _ string) *apiError {
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
	return x.listed(append(b, `,"first_id":"msg_mock","last_id":"msg_mock","has_more":false}`...))
}
