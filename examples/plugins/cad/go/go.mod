module github.com/latchkey-proxy/latchkey/examples/plugins/cad/go

go 1.24

require github.com/latchkey-proxy/latchkey/plugins/sdk/go v0.0.0

replace github.com/latchkey-proxy/latchkey/plugins/sdk/go => ../../../../plugins/sdk/go
