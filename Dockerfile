# Image for the CPU. Build it in a checkout, and keep the runs in ./data:
#
#   docker build -t meta_policy_search .
#   docker run --rm -v "$PWD/data:/workspace/data" meta_policy_search \
#       python experiments/pro_mp.py --env MetaPointEnvCorner
#
# Without a command, the container prints the flags of experiments/pro_mp.py. `.dockerignore` lists the copied files.
FROM python:3.11-slim

ENV PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore PYTHONUNBUFFERED=1
WORKDIR /workspace
COPY . .
RUN pip install -e .

CMD ["python", "experiments/pro_mp.py", "--help"]
