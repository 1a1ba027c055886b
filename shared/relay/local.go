package relay

import (
	"bytes"
	"io"
	"net/http"
)

// answerHere answers in the provider's place.
func answerHere(c *call) answer {
	body, err := c.req.Route.Local(c.body.In)
	if err != nil {
		return refusal(err)
	}
	return answer{resp: &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{}, ContentLength: int64(len(body)), Body: io.NopCloser(bytes.NewReader(body)),
	}}
}
