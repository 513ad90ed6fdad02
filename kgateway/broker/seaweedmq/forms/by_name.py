"""
The forms there are.
"""

from kgateway.broker.seaweedmq.forms.batch import BatchForm
from kgateway.broker.seaweedmq.forms.form import Form
from kgateway.broker.seaweedmq.forms.plain import PlainForm
from kgateway.broker.seaweedmq.forms.record import RecordForm

FORMS: dict[str, Form] = {form.name: form for form in (RecordForm(), PlainForm(), BatchForm())}
