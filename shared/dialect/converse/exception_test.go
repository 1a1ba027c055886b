package converse

import (
	"net/http"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// The SDK of AWS throws the exception that the header or __type names.
func TestErrorsNameTheirException(t *testing.T) {
	t.Parallel()
	for code, want := range map[fault.Code]string{
		fault.InvalidRequest: "ValidationException", fault.Unauthorized: "AccessDeniedException", fault.ModelNotAllowed: "AccessDeniedException", fault.NotFound: "ResourceNotFoundException",
		fault.BudgetExhausted: "ServiceQuotaExceededException", fault.RateLimited: "ThrottlingException", fault.GuardrailDenied: "ValidationException",
		fault.ServiceUnavailable: "ServiceUnavailableException", fault.InternalError: "InternalServerException",
	} {
		f, h := fault.New(code, "", "why"), http.Header{}
		Converse{}.Challenge(h, nil, f)
		if body := string(Converse{}.AppendError(nil, f, &chat.Options{})); h.Get("x-amzn-errortype") != want || !strings.Contains(body, `"__type":"`+want+`"`) {
			t.Errorf("%s: %v %s", code, h, body)
		}
	}
}
