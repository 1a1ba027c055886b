// Package app assembles the packages with the stores it is given. Core is the common part of
// every process; app/plane adds the data plane, app/console the administration, app/work the
// workers, so that each function links only what it needs. app/onaws builds Backends from AWS;
// the local gateway builds its own.
package app
