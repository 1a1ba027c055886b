package ses_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"gateway/shared/fault"
	"gateway/shared/notice"
	"gateway/shared/notice/ses"
	"gateway/shared/testkit/sestest"
)

const sender = "gateway@example.com"

func start(t *testing.T, identity string) (*ses.Mailer, *sestest.Server) {
	t.Helper()
	s := sestest.Start(sender)
	t.Cleanup(s.Close)
	cfg := aws.Config{Region: "us-east-1", Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", "")}
	cfg.Retryer = func() aws.Retryer { // as the SDK's own, without its waits
		return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 3, time.Millisecond })
	}
	return ses.New(cfg, ses.Options{From: sender, Identity: identity, Endpoint: s.URL()}), s
}

var hello = notice.Mail{To: []string{"ann@example.com"}, Subject: "Grüße", Text: "Hello", HTML: "<p>Hello</p>"}

func TestAMailIsSent(t *testing.T) {
	t.Parallel()
	for _, identity := range []string{"", "arn:aws:ses:us-east-1:123456789012:identity/example.com"} {
		m, s := start(t, identity)
		plain := hello
		plain.HTML = ""
		for _, mail := range []notice.Mail{hello, plain} {
			if err := m.Send(t.Context(), mail); err != nil {
				t.Fatal(err)
			}
		}
		got := s.Mails()
		if len(got) != 2 || got[0].From != sender || got[0].Identity != identity || got[0].To[0] != "ann@example.com" || got[0].Subject != "Grüße" || got[0].HTML != hello.HTML || got[1].HTML != "" || got[1].Text != "Hello" {
			t.Errorf("%+v", got)
		}
	}
}

func TestSESRejectionsAreReportedWithoutNames(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"MessageRejected", "AccountSuspendedException", "SendingPausedException", "MailFromDomainNotVerifiedException", "BadRequestException", "AccessDeniedException"} {
		m, s := start(t, "")
		s.Fail(http.StatusBadRequest, code)
		err := m.Send(t.Context(), hello)
		if err == nil || !strings.Contains(err.Error(), code) || strings.Contains(err.Error(), "@") || fault.Is(err, fault.ServiceUnavailable) || s.Calls() != 1 {
			t.Errorf("%s: %v after %d calls", code, err, s.Calls())
		}
	}
}

func TestWhatPassesIsTriedAgain(t *testing.T) {
	t.Parallel()
	m, s := start(t, "")
	s.Fail(http.StatusTooManyRequests, "TooManyRequestsException")
	s.Fail(http.StatusInternalServerError, "InternalServiceErrorException")
	if err := m.Send(t.Context(), hello); err != nil || len(s.Mails()) != 1 {
		t.Errorf("%v, %d sent", err, len(s.Mails()))
	}
	for range 3 {
		s.Fail(http.StatusServiceUnavailable, "InternalServiceErrorException")
	}
	if err := m.Send(t.Context(), hello); !fault.Is(err, fault.ServiceUnavailable) {
		t.Errorf("an outage: %v", err)
	}
	if err := m.Send(t.Context(), notice.Mail{To: []string{"ann"}, Text: "t"}); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("a wrong address: %v", err)
	}
}
