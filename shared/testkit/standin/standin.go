package standin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"gateway/shared/app/onaws"
	"gateway/shared/store/dynamo/emulator"
	"gateway/shared/testkit/kmstest"
	"gateway/shared/testkit/sqstest"
)

// Services are the services of one process.
type Services struct {
	SQS *sqstest.Server
	KMS *kmstest.Server

	dynamo *emulator.Server
	front  *httptest.Server // in front of the emulator
	s3     *httptest.Server
	key    string
	queues map[string]string // addresses by name
}

// Region is the region that the emulators report.
const Region = "eu-west-1"

// Start starts the services with the queues and tables of the installation, its bucket and
// its key. root is the source tree, where npm installs the emulator; if it is not
// installed, the error is emulator.ErrMissing.
func Start(ctx context.Context, root string) (_ *Services, err error) {
	s := &Services{queues: map[string]string{}}
	defer func() {
		if err != nil {
			s.Close()
		}
	}()
	if s.dynamo, err = emulator.Start(root); err != nil {
		return nil, err
	}
	if s.front, err = likeDynamoDB(s.dynamo.URL()); err != nil {
		return nil, err
	}
	if err = s.makeTables(ctx); err != nil {
		return nil, err
	}
	backend := s3mem.New()
	if err = backend.CreateBucket(bucketName); err != nil {
		return nil, err
	}
	s.s3 = httptest.NewServer(likeS3(gofakes3.New(backend).Server()))
	s.KMS = kmstest.Start()
	s.key = s.KMS.CreateKey()
	s.SQS = sqstest.Start()
	in := Described()
	for _, name := range in.order() {
		q := in.Queues[name]
		s.queues[name] = s.SQS.Create(name, sqstest.Options{
			Visibility: time.Duration(q.VisibilityTimeout) * time.Second, MaxReceives: q.MaxReceives, DeadLetter: q.DeadLetter,
		})
	}
	return s, nil
}

// likeS3 prevents the fake from sending the checksum of the complete object with a part of it.
func likeS3(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Range") != "" {
			r.Header.Del("X-Amz-Checksum-Mode")
			w = partial{w}
		}
		next.ServeHTTP(w, r)
	})
}

type partial struct{ http.ResponseWriter }

func (p partial) WriteHeader(status int) {
	for name := range p.Header() {
		if strings.HasPrefix(name, "X-Amz-Checksum-") {
			p.Header().Del(name)
		}
	}
	p.ResponseWriter.WriteHeader(status)
}

// Close ends all of it.
func (s *Services) Close() {
	for _, server := range []*httptest.Server{s.front, s.s3} {
		if server != nil {
			server.CloseClientConnections()
			server.Close()
		}
	}
	if s.SQS != nil {
		s.SQS.Close()
	}
	if s.KMS != nil {
		s.KMS.Close()
	}
	if s.dynamo != nil {
		s.dynamo.Close()
	}
}

// Endpoints are the variables that hold the addresses of the services, with their values.
func (s *Services) Endpoints() map[string]string {
	return map[string]string{
		"AWS_ENDPOINT_URL_DYNAMODB": s.front.URL, "AWS_ENDPOINT_URL_SQS": s.SQS.URL(),
		"AWS_ENDPOINT_URL_S3": s.s3.URL, "AWS_ENDPOINT_URL_KMS": s.KMS.URL(),
	}
}

// Identity are the variables with a caller's credentials; accessKey is the id of the access
// key. The services accept any.
func Identity(accessKey string) map[string]string {
	return map[string]string{"AWS_REGION": Region, "AWS_ACCESS_KEY_ID": accessKey, "AWS_SECRET_ACCESS_KEY": "secret"}
}

// Named are the variables that name the installation's resources.
func (s *Services) Named() map[string]string {
	return map[string]string{
		onaws.EnvTablePrefix: tablePrefix, onaws.EnvBucket: bucketName, onaws.EnvKey: s.key, onaws.EnvAuditQueue: s.queues["gateway-audit"],
		onaws.EnvUsageQueue: s.queues["gateway-usage"], onaws.EnvRunQueue: s.queues["gateway-batches"], onaws.EnvExportQueue: s.queues["gateway-exports"],
	}
}

// tablePrefix is the prefix of the tables' names.
const tablePrefix = "gateway-"

// Set sets variables for this process.
func Set(vars ...map[string]string) error {
	var errs []error
	for _, m := range vars {
		for name, v := range m {
			errs = append(errs, os.Setenv(name, v))
		}
	}
	return errors.Join(errs...)
}

// String names the services and where they are.
func (s *Services) String() string {
	return fmt.Sprintf("DynamoDB %s, SQS %s, S3 %s, KMS %s", s.front.URL, s.SQS.URL(), s.s3.URL, s.KMS.URL())
}
