"""Libraries that HumanEvalPack's tests use, where a sandbox without a network has none.

Go's tests assert with `testify`, one of JavaScript's with `js-md5`: both are stood in for by a few lines. Rust's use
three crates, C++'s a few headers of Boost and OpenSSL: those must be in the sandbox's image.
"""

CRATES = {"rand": "0.4", "regex": "1", "md5": "0.7"}
"""What the Rust tasks import, in the versions that their tests were written for."""

CARGO_TOML = """\
[package]
name = "solution"
version = "0.0.0"
edition = "2021"

[lib]
path = "program.rs"

[dependencies]
"""

JS_MD5 = "module.exports = text => require('crypto').createHash('md5').update(text).digest('hex')\n"

GO_MOD = """\
module tests

go 1.18

require github.com/stretchr/testify v0.0.0

replace github.com/stretchr/testify => ./testify
"""

_ASSERT = """\
package assert

import (
	"math"
	"reflect"
	"testing"
)

type Assertions struct{ t *testing.T }

func New(t *testing.T) *Assertions { return &Assertions{t} }

func (a *Assertions) that(ok bool, said ...interface{}) bool {
	a.t.Helper()
	if !ok {
		a.t.Error(said...)
	}
	return ok
}

func isNil(value interface{}) bool {
	if value == nil {
		return true
	}
	switch v := reflect.ValueOf(value); v.Kind() {
	case reflect.Chan, reflect.Func, reflect.Map, reflect.Ptr, reflect.Interface, reflect.Slice:
		return v.IsNil()
	}
	return false
}

func number(value interface{}) float64 {
	return reflect.ValueOf(value).Convert(reflect.TypeOf(float64(0))).Float()
}

func (a *Assertions) Equal(want, got interface{}, said ...interface{}) bool {
	return a.that(reflect.DeepEqual(want, got), "want", want, "got", got)
}

func (a *Assertions) NotEqual(want, got interface{}, said ...interface{}) bool {
	return a.that(!reflect.DeepEqual(want, got), "unwanted", got)
}

func (a *Assertions) EqualValues(want, got interface{}, said ...interface{}) bool {
	to := reflect.TypeOf(got)
	same := reflect.DeepEqual(want, got)
	if v := reflect.ValueOf(want); !same && to != nil && v.IsValid() && v.Type().ConvertibleTo(to) {
		same = reflect.DeepEqual(v.Convert(to).Interface(), got)
	}
	return a.that(same, "want", want, "got", got)
}

func (a *Assertions) True(value bool, said ...interface{}) bool  { return a.that(value, "not true") }
func (a *Assertions) False(value bool, said ...interface{}) bool { return a.that(!value, "not false") }

func (a *Assertions) Nil(value interface{}, said ...interface{}) bool {
	return a.that(isNil(value), "not nil", value)
}

func (a *Assertions) NotNil(value interface{}, said ...interface{}) bool {
	return a.that(!isNil(value), "nil")
}

func (a *Assertions) Len(value interface{}, length int, said ...interface{}) bool {
	return a.that(reflect.ValueOf(value).Len() == length, "not of length", length, value)
}

func (a *Assertions) InDelta(want, got interface{}, delta float64, said ...interface{}) bool {
	return a.that(math.Abs(number(want)-number(got)) <= delta, "want", want, "got", got)
}

func Equal(t *testing.T, want, got interface{}, said ...interface{}) bool {
	t.Helper()
	return New(t).Equal(want, got)
}

func NotEqual(t *testing.T, want, got interface{}, said ...interface{}) bool {
	t.Helper()
	return New(t).NotEqual(want, got)
}

func True(t *testing.T, value bool, said ...interface{}) bool {
	t.Helper()
	return New(t).True(value)
}

func False(t *testing.T, value bool, said ...interface{}) bool {
	t.Helper()
	return New(t).False(value)
}

func Nil(t *testing.T, value interface{}, said ...interface{}) bool {
	t.Helper()
	return New(t).Nil(value)
}

func InDelta(t *testing.T, want, got interface{}, delta float64, said ...interface{}) bool {
	t.Helper()
	return New(t).InDelta(want, got, delta)
}
"""
TESTIFY = {
    "testify/go.mod": "module github.com/stretchr/testify\n\ngo 1.18\n",
    "testify/assert/assert.go": _ASSERT,
}
"""The part of testify's `assert` that tests of functions use."""
