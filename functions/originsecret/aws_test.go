package originsecret

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

const distributionConfig = `<?xml version="1.0" encoding="UTF-8"?>
<DistributionConfig xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/"><CallerReference>r</CallerReference><Origins><Quantity>2</Quantity><Items>` +
	`<Origin><Id>api</Id><CustomHeaders><Quantity>2</Quantity><Items><OriginCustomHeader><HeaderName>X-Other</HeaderName><HeaderValue>old-value</HeaderValue></OriginCustomHeader>` +
	`<OriginCustomHeader><HeaderName>X-Gateway-Origin-Secret</HeaderName><HeaderValue>old-value</HeaderValue></OriginCustomHeader></Items></CustomHeaders></Origin>` +
	`<Origin><Id>container</Id><CustomHeaders><Quantity>1</Quantity><Items><OriginCustomHeader><HeaderName>x-gateway-origin-secret</HeaderName><HeaderValue>other-value</HeaderValue></OriginCustomHeader></Items></CustomHeaders></Origin>` +
	`</Items></Origins><SomethingOfNextYear><!-- kept --> a &amp; b </SomethingOfNextYear></DistributionConfig>`

// cloudFake answers as the three services do, strictly.
type cloudFake struct {
	t       *testing.T
	secret  string
	config  string
	version string
	status  string
	refuse  string // an action that is denied
	calls   []string
}

func (f *cloudFake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	auth, region := r.Header.Get("Authorization"), "us-east-1"
	action, service := r.Header.Get("X-Amz-Target"), "cloudfront"
	switch {
	case strings.HasPrefix(action, "secretsmanager."):
		service, region = "secretsmanager", "eu-west-1"
	case strings.HasPrefix(action, "AmazonSSM."):
		service, region = "ssm", "eu-west-1"
	default:
		action = r.Method + " " + r.URL.Path
	}
	if !strings.Contains(auth, "/"+region+"/"+service+"/aws4_request") {
		f.t.Errorf("%s is signed as %s", action, auth)
	}
	f.calls = append(f.calls, action)
	if action == f.refuse {
		w.WriteHeader(http.StatusBadRequest)
		io.WriteString(w, `{"__type":"com.amazonaws#AccessDeniedException","Message":"old-value"}`)
		return
	}
	var in struct{ SecretId, SecretString, ClientRequestToken, Name string }
	if service != "cloudfront" {
		if err := json.Unmarshal(body, &in); err != nil || r.Header.Get("Content-Type") != "application/x-amz-json-1.1" {
			f.t.Errorf("%s: %s", action, body)
		}
	}
	switch action {
	case "secretsmanager.GetSecretValue":
		json.NewEncoder(w).Encode(map[string]string{"SecretString": f.secret})
	case "secretsmanager.PutSecretValue":
		if len(in.ClientRequestToken) < 32 || len(in.ClientRequestToken) > 64 || in.SecretId != "the-secret" {
			f.t.Errorf("%s", body)
		}
		f.secret = in.SecretString
		io.WriteString(w, "{}")
	case "AmazonSSM.GetParameter":
		io.WriteString(w, `{"Parameter":{"Name":"`+in.Name+`","Value":"E123ABC"}}`)
	case "GET /2020-05-31/distribution/E123ABC":
		io.WriteString(w, `<Distribution xmlns="http://cloudfront.amazonaws.com/doc/2020-05-31/"><Id>E123ABC</Id><Status>`+f.status+`</Status></Distribution>`)
	case "GET /2020-05-31/distribution/E123ABC/config":
		w.Header().Set("ETag", f.version)
		io.WriteString(w, f.config)
	case "PUT /2020-05-31/distribution/E123ABC/config":
		if r.Header.Get("If-Match") != f.version {
			w.WriteHeader(http.StatusPreconditionFailed)
			io.WriteString(w, `<ErrorResponse><Error><Code>PreconditionFailed</Code><Message>old-value</Message></Error></ErrorResponse>`)
			return
		}
		f.config, f.version = string(body), f.version+"1"
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func newCloud(t *testing.T) (*Cloud, *cloudFake) {
	t.Helper()
	f := &cloudFake{t: t, secret: `{"previous":"","current":"old-value"}`, config: distributionConfig, version: "V1", status: "InProgress"}
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	t.Setenv("AWS_ENDPOINT_URL", s.URL)
	t.Setenv(EnvSecret, "the-secret")
	t.Setenv(EnvParameter, "/gateway/distribution")
	return FromEnvironment(aws.Config{Region: "eu-west-1", HTTPClient: s.Client(), Credentials: credentials.NewStaticCredentialsProvider("AKID", "key", "")}), f
}

func TestTheCloudIsReadAndChanged(t *testing.T) {
	c, f := newCloud(t)
	s, err := c.Load(t.Context())
	if err != nil || s.Current != "old-value" || s.Next != "" {
		t.Fatalf("%+v, %v", s, err)
	}
	s.Next = "new-value"
	if err := c.Save(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if again, err := c.Load(t.Context()); err != nil || again != s {
		t.Errorf("%+v, %v", again, err)
	}
	values, settled, err := c.OriginValues(t.Context())
	if err != nil || settled || len(values) != 2 || values[0] != "old-value" || values[1] != "other-value" {
		t.Errorf("%v, %v, %v", values, settled, err)
	}
	if err := c.Send(t.Context(), "new-value"); err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(distributionConfig, "Secret</HeaderName><HeaderValue>old-value", "Secret</HeaderName><HeaderValue>new-value", 1)
	want = strings.Replace(want, "other-value", "new-value", 1)
	if f.config != want {
		t.Errorf("the configuration became\n%s\nwant\n%s", f.config, want)
	}
	f.status = "Deployed"
	if values, settled, err = c.OriginValues(t.Context()); err != nil || !settled || values[0] != "new-value" || values[1] != "new-value" {
		t.Errorf("%v, %v, %v", values, settled, err)
	}
}

func TestErrorsContainNoSecret(t *testing.T) {
	for _, action := range []string{
		"secretsmanager.GetSecretValue", "secretsmanager.PutSecretValue", "AmazonSSM.GetParameter",
		"GET /2020-05-31/distribution/E123ABC", "GET /2020-05-31/distribution/E123ABC/config", "PUT /2020-05-31/distribution/E123ABC/config",
	} {
		c, f := newCloud(t)
		f.refuse = action
		_, err1 := c.Load(t.Context())
		err2 := c.Save(t.Context(), Secret{Current: "old-value"})
		_, _, err3 := c.OriginValues(t.Context())
		err4 := c.Send(t.Context(), "old-value")
		errorCount := 0
		for _, err := range []error{err1, err2, err3, err4} {
			if err == nil {
				continue
			}
			errorCount++
			if !strings.Contains(err.Error(), "AccessDeniedException") || strings.Contains(err.Error(), "value") {
				t.Errorf("%s: %v", action, err)
			}
		}
		if errorCount == 0 {
			t.Errorf("%s: nothing failed", action)
		}
	}
	for _, secret := range []string{"no JSON old-value", `["old-value"]`, `{"current":1}`} {
		c, f := newCloud(t)
		f.secret = secret
		if _, err := c.Load(t.Context()); err == nil || strings.Contains(err.Error(), "value") {
			t.Errorf("%s: %v", secret, err)
		}
	}
}

func TestSomebodyElsesDistributionIsNotChanged(t *testing.T) {
	for name, config := range map[string]string{
		"no header": strings.ReplaceAll(strings.ReplaceAll(distributionConfig, "X-Gateway-Origin-Secret", "X-A"), "x-gateway-origin-secret", "x-b"),
		"no XML":    "<a", "nothing": "",
	} {
		c, f := newCloud(t)
		f.config = config
		if err := c.Send(t.Context(), "new-value"); err == nil || f.config != config {
			t.Errorf("%s: %v", name, err)
		}
	}
}
