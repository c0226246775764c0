"""Tests. The folders mirror the package; `helpers` holds code that several tests share."""
