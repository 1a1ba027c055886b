package onaws

import (
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"gateway/shared/store"
)

func TestAdvice(t *testing.T) {
	t.Parallel()
	api := func(code string) error {
		return fmt.Errorf("store: %w", &smithy.OperationError{ServiceID: "DynamoDB", OperationName: "GetItem", Err: &smithy.GenericAPIError{Code: code, Message: "said by AWS"}})
	}
	for _, a := range advice {
		for _, code := range a.codes {
			err := Advise(api(code))
			var apiErr smithy.APIError
			if !errors.As(err, &apiErr) || !strings.HasPrefix(err.Error(), strings.ReplaceAll(a.text, "%s", "DynamoDB GetItem")) || !strings.Contains(err.Error(), "said by AWS") {
				t.Errorf("%s: %v", code, err)
			}
		}
	}
	for name, c := range map[string]struct {
		err     error
		message string
	}{
		"unknown region":   {fmt.Errorf("x: %w", &net.DNSError{Name: "dynamodb.eu-west-9.amazonaws.com", IsNotFound: true}), "is AWS_REGION="},
		"no credentials":   {errors.New("get identity: get credentials: failed to refresh cached credentials, no EC2 IMDS role found"), "there are no AWS credentials"},
		"unknown profile":  {errors.New("failed to get shared config profile, nobody"), "AWS_PROFILE does not exist"},
		"a provider's DNS": {&net.DNSError{Name: "api.example.com", IsNotFound: true}, ""},
		"no network":       {&net.DNSError{Name: "dynamodb.eu-west-1.amazonaws.com", IsTimeout: true}, ""},
		"another code":     {api("ConditionalCheckFailedException"), ""},
		"another error":    {errors.New("disk full"), ""},
	} {
		got := Advise(c.err)
		if !errors.Is(got, c.err) || c.message == "" && got.Error() != c.err.Error() || !strings.Contains(got.Error(), c.message) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if Advise(nil) != nil {
		t.Error("advice about nothing")
	}
}

// TestAdviceThroughTheStore: the kind of an error is still known where a process
// tells of it. In a row: it sets the environment.
func TestAdviceThroughTheStore(t *testing.T) {
	clearEnv(t)
	code := ""
	aws := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"no"}`, code)
		w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(body))))
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, body)
	}))
	defer aws.Close()
	t.Setenv("AWS_ENDPOINT_URL", aws.URL)
	in, err := Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for c, message := range map[string]string{
		"AccessDeniedException": "no permission for DynamoDB ", "ExpiredTokenException": "have expired", "UnrecognizedClientException": "does not know these credentials",
		"ResourceNotFoundException": "GATEWAY_TABLE_PREFIX",
	} {
		code = c
		_, err := in.Setup(t.Context())
		if err == nil || !strings.Contains(Advise(err).Error(), message) {
			t.Errorf("%s: %v", c, Advise(err))
		}
		if _, _, err = in.Store.Table(store.Control).Get(t.Context(), store.RawKey("a", "b"), true); err == nil || !strings.Contains(Advise(err).Error(), message) {
			t.Errorf("%s: %v", c, Advise(err))
		}
	}
}

// In a row: it sets the environment.
func TestTheRegionMustBeKnown(t *testing.T) {
	clearEnv(t)
	t.Setenv("AWS_REGION", "")
	t.Setenv("AWS_DEFAULT_REGION", "")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	if _, err := Open(t.Context()); err == nil || !strings.Contains(err.Error(), "AWS_REGION must be set") {
		t.Errorf("%v", err)
	}
}
