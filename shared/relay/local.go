package relay

import (
	"bytes"
	"io"
	"net/http"
)

// answerHere answers in the provider's place.
func (x *exchanges) answerHere() answer {
	body, err := x.Route.Local(x.In)
	if err != nil {
		return refusal(err)
	}
	return answer{resp: &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}}
}
